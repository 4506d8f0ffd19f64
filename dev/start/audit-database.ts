/**
 * Creates the tables of the audit trail before the Workers start. wrangler takes seconds for that, so it does it
 * once for each set of migrations: a new database is a copy of an empty one with the tables.
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Migrations } from './project.ts'

/** Where wrangler has local D1 databases, below its directory of state. */
const DATABASES = join('v3', 'd1')
/** Names the migrations of the databases beside it. */
const STAMP = 'migrations.sha256'

export interface AuditDatabaseOptions {
  readonly root: string
  readonly migrations: Migrations
  readonly stateDirectory: string
  /** Applies the migrations to the database in a directory of state. Rejects if that fails. */
  apply(stateDirectory: string): Promise<void>
}

/** Creates the tables, or updates those of an earlier version. */
export async function prepareAuditDatabase(options: AuditDatabaseOptions): Promise<void> {
  const { stateDirectory, apply } = options
  const digest = await digestOf(options)
  const databases = join(stateDirectory, DATABASES)
  const stamp = join(databases, STAMP)
  if ((await readFile(stamp, 'utf8').catch(() => '')) === digest) return
  if (existsSync(databases)) {
    await apply(stateDirectory)
    await writeFile(stamp, digest)
    return
  }
  // Complete or absent, also if this process is killed.
  await mkdir(join(databases, '..'), { recursive: true })
  const draft = await mkdtemp(`${databases}-`)
  await cp(await emptyDatabases(options, digest), draft, { recursive: true })
  await rename(draft, databases)
}

/** Returns the folder of empty databases with the tables, and creates it the first time. */
async function emptyDatabases(
  { root, apply }: AuditDatabaseOptions,
  digest: string,
): Promise<string> {
  const cache = join(root, 'node_modules', '.cache', 'portcullis')
  const folder = join(cache, `audit-database-${digest}`)
  if (existsSync(folder)) return folder
  await mkdir(cache, { recursive: true })
  const draft = await mkdtemp(join(cache, 'draft-'))
  try {
    await apply(draft)
    await writeFile(join(draft, DATABASES, STAMP), digest)
    // Of several starts, the first one wins.
    await rename(join(draft, DATABASES), folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error
    })
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
  return folder
}

async function digestOf({ root, migrations }: AuditDatabaseOptions): Promise<string> {
  const folder = join(root, migrations.folder)
  const files = (await readdir(folder)).sort().map((name) => join(folder, name))
  const hash = createHash('sha256')
  for (const file of [join(root, migrations.config), ...files]) hash.update(await readFile(file))
  return hash.digest('hex')
}
