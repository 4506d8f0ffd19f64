/** Peers that registries have: installed on first use, in pinned versions, and kept. */
import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../../dev/start/settings.ts'

/** Ignored by git. */
const INSTALLED = join(ROOT, '.wrangler', 'peers')
const SOURCES = join(ROOT, 'bench', 'peers')
const INSTALL_TIMEOUT_MS = 120_000

export interface Installation {
  /** Its folder in `bench/peers`, and where it is installed. */
  readonly name: string
  /** Files of that folder which are copied; the last says which versions, with their checksums. */
  readonly files: readonly string[]
  /** Programs and their arguments, which run one after the other where it is installed. */
  readonly commands: readonly (readonly [program: string, ...args: string[]])[]
}

/** Returns where it is. Throws an `Error` of one line if it cannot be installed. */
export async function installed(
  { name, files, commands }: Installation,
  signal: AbortSignal,
): Promise<string> {
  const directory = join(INSTALLED, name)
  const source = (file: string) => join(SOURCES, name, file)
  const lock = files.at(-1) ?? ''
  const done = join(directory, 'installed')
  mkdirSync(directory, { recursive: true })
  for (const file of files) copyFileSync(source(file), join(directory, file))
  if (existsSync(done) && readFileSync(done, 'utf8') === readFileSync(source(lock), 'utf8'))
    return directory
  for (const [program, ...args] of commands) {
    try {
      await promisify(execFile)(program, args, {
        cwd: directory,
        signal,
        timeout: INSTALL_TIMEOUT_MS,
      })
    } catch {
      signal.throwIfAborted()
      throw new Error(`cannot be installed: ${program.split('/').at(-1)} fails, or takes too long`)
    }
  }
  copyFileSync(source(lock), done)
  return directory
}

/** What a program says of its version: the first `1.2` or `1.2.3` in it, else `unknown`. */
export async function versionOf(program: string, arg: string): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(program, [arg])
  return /\d+\.\d+(?:\.\d+)?/.exec(stdout + stderr)?.[0] ?? 'unknown'
}
