/** Folders of build output that all test files share. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT } from '../harness/process.ts'

/** `npm ci` empties it. */
const CACHE = join(ROOT, 'node_modules/.cache/portcullis-tests')

export interface Artifact {
  readonly name: string
  /** Paths from the root of everything that the output depends on, besides packages. */
  readonly inputs: readonly string[]
  /** Writes the output to an empty folder. */
  make(folder: string): Promise<void>
}

/**
 * Returns the folder of an artifact for the present content of its inputs, and makes it first if no
 * test has done so. Workers that need it at the same moment may all make it; the first one wins.
 * Nobody may write to the folder.
 */
export async function makeOnce({ name, inputs, make }: Artifact): Promise<string> {
  const hash = createHash('sha256')
  for (const input of inputs) await addTo(hash, input)
  const folder = join(CACHE, `${name}-${hash.digest('hex')}`)
  if (existsSync(folder)) return folder
  await mkdir(CACHE, { recursive: true })
  const draft = await mkdtemp(join(CACHE, 'draft-'))
  try {
    await make(draft)
    await rename(draft, folder)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
  return folder
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
