/** Puts a revision of this repository into a directory, with what it takes to bundle it. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../../dev/start/settings.ts'
import type { Shutdown } from '../../dev/start/shutdown.ts'

/** A revision of git as a commit, or a directory that was named itself. */
export interface Revision {
  /** As it was asked for. */
  readonly name: string
  /** Twelve digits; undefined for a directory, which may hold what is not committed. */
  readonly commit: string | undefined
  readonly directory: string | undefined
}

const COMMIT_DIGITS = 12
const run = promisify(execFile)

/** Throws an `Error` of one line for what is neither. Relative directories start at `cwd`. */
export async function findRevision(name: string, cwd: string): Promise<Revision> {
  if (/^[./]/.test(name)) {
    const directory = resolve(cwd, name)
    if (existsSync(join(directory, 'src', 'index.ts')))
      return { name, commit: undefined, directory }
    throw new Error(`${name} is not a checkout: it has no src/index.ts`)
  }
  try {
    const asked = `${name}^{commit}`
    const { stdout } = await git('rev-parse', '--verify', '--quiet', '--end-of-options', asked)
    return { name, commit: stdout.trim().slice(0, COMMIT_DIGITS), directory: undefined }
  } catch {
    throw new Error(`there is no revision ${name} here`)
  }
}

/**
 * Returns the directory of a revision; one of git is checked out to `directory`, which must not
 * exist, and removed when `shutdown` comes. Its dependencies are those of this checkout, which is
 * above it, or its own where they differ: then they are installed.
 */
export async function checkOut(
  { commit, directory: named }: Revision,
  directory: string,
  shutdown: Pick<Shutdown, 'defer'>,
): Promise<string> {
  if (named !== undefined) return named
  if (commit === undefined) throw new Error('a revision has a commit or a directory')
  const added = git('worktree', 'add', '--detach', '--quiet', directory, commit)
  // Not before it is there: what is broken off would go on writing.
  shutdown.defer(async () => {
    await Promise.allSettled([added])
    await git('worktree', 'remove', '--force', directory)
  })
  await added
  if (lockedFor(directory) !== lockedFor(ROOT)) {
    await run('npm', ['ci', '--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund'], {
      cwd: directory,
    })
  }
  return directory
}

interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly dev?: boolean; readonly integrity?: string }>
  >
}

/** The packages that can be part of a bundle, as text. */
function lockedFor(directory: string): string {
  const lock = JSON.parse(readFileSync(join(directory, 'package-lock.json'), 'utf8')) as Lock
  const bundled = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && !dev)
  return JSON.stringify(bundled.map(([path, { integrity }]) => [path, integrity]).toSorted())
}

function git(...args: readonly string[]) {
  return run('git', args, { cwd: ROOT })
}
