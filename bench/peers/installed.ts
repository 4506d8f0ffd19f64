/** Installs peers from registries on first use, in pinned versions, and keeps them. */
import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../../dev/start/settings.ts'

/** Directory of the installed peers, ignored by git. */
const INSTALLED = join(ROOT, '.wrangler', 'peers')
const SOURCES = join(ROOT, 'bench', 'peers')
const INSTALL_TIMEOUT_MS = 120_000

export interface Installation {
  /** The folder in `bench/peers`, and the name of its installation. */
  readonly name: string
  /** Files to copy from that folder. The last one pins versions with checksums. */
  readonly files: readonly string[]
  /** Commands to run one after another in the installation directory. */
  readonly commands: readonly (readonly [program: string, ...args: string[]])[]
}

/** Returns the installation directory. Throws an `Error` of one line if the installation fails. */
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

/** Returns the version in a program's output: the first `1.2` or `1.2.3`, else `unknown`. */
export async function versionOf(program: string, arg: string): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(program, [arg])
  return /\d+\.\d+(?:\.\d+)?/.exec(stdout + stderr)?.[0] ?? 'unknown'
}
