/** Folders of build output that all test files share. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { ROOT } from '../../harness/process.ts'

/** `npm ci` empties it. */
const CACHE = join(ROOT, 'node_modules/.cache/portcullis-tests')

const POLL_MS = 100

export interface Artifact {
  readonly name: string
  /** Paths from the root of everything that the output depends on, besides packages. */
  readonly inputs: readonly string[]
  /** Writes the output to an empty folder. */
  make(folder: string): Promise<void>
}

/**
 * Returns the folder of an artifact for the present content of its inputs, and makes it first if no
 * test has done so. Of several workers that need it, one makes it, and the others wait. No test may
 * write to the folder.
 */
export async function makeOnce({ name, inputs, make }: Artifact): Promise<string> {
  const hash = createHash('sha256')
  for (const input of inputs) await addTo(hash, input)
  const folder = join(CACHE, `${name}-${hash.digest('hex')}`)
  const lock = `${folder}.lock`
  await mkdir(CACHE, { recursive: true })
  while (!existsSync(folder)) {
    if (await tryLock(lock)) {
      try {
        if (!existsSync(folder)) await makeFolder(folder, make)
      } finally {
        await rm(lock, { force: true })
      }
    } else await setTimeout(POLL_MS)
  }
  return folder
}

/** Returns whether this process holds the lock now. A lock of a process that no longer runs is removed. */
async function tryLock(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    const pid = Number(await readFile(lock, 'utf8').catch(() => ''))
    if (pid > 0 && !isRunning(pid)) await rm(lock, { force: true })
    return false
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function makeFolder(folder: string, make: Artifact['make']): Promise<void> {
  const draft = await mkdtemp(join(CACHE, 'draft-'))
  try {
    await make(draft)
    await rename(draft, folder)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    throw error
  }
}

/** Adds the names and the content of all files below a path. */
async function addTo(hash: ReturnType<typeof createHash>, path: string): Promise<void> {
  const absolute = join(ROOT, path)
  if (!(await stat(absolute)).isDirectory()) {
    const content = await readFile(absolute)
    hash.update(`${path}\n${content.length}\n`).update(content)
    return
  }
  for (const entry of (await readdir(absolute)).sort())
    if (entry !== '.wrangler') await addTo(hash, join(path, entry))
}
