/** Installs other gateways, and starts them as child processes. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { HOST, ROOT } from '../../dev/start/settings.ts'
import { endWithParent } from '../processes/child.ts'

const START_TIMEOUT_MS = 15_000
const POLL_MS = 25
/** Maximum length of an error message in characters. */
const MAX_COMPLAINT = 160

export interface ServerOptions {
  readonly program: string
  readonly args: readonly string[]
  /** The complete environment. Default: only the search path of this process. */
  readonly env?: Readonly<Record<string, string>>
  readonly port: number
  /** Temporary directory. Its name is removed from error messages. */
  readonly directory: string
}

export interface Server {
  readonly url: string
  readonly pid: number
  close(): Promise<void>
}

/** Starts the server. Throws an `Error` of one line if it does not listen in time. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { program, args, env = {}, port, directory } = options
  const child = spawn(program, args, {
    cwd: directory,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let complaints = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-MAX_COMPLAINT * 10)
  })
  const close = endWithParent(child)
  try {
    await spawned(child)
    const end = Date.now() + START_TIMEOUT_MS
    while (!(await listens(port))) {
      if (hasEnded(child) || Date.now() > end)
        throw new Error(`does not start: ${lastLine(complaints).replaceAll(directory, '')}`)
      await sleep(POLL_MS)
    }
    return { url: `http://${HOST}:${port}`, pid: child.pid as number, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function spawned(child: ChildProcess): Promise<void> {
  try {
    await once(child, 'spawn')
  } catch (error) {
    const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT'
    throw new Error(isAbsent ? 'not on this machine' : 'cannot be run', { cause: error })
  }
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, HOST)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null
}

function lastLine(text: string): string {
  return (text.trim().split('\n').at(-1) ?? '').slice(0, MAX_COMPLAINT)
}

const INSTALLED = join(ROOT, '.wrangler', 'peers')
const SOURCES = join(ROOT, 'bench', 'peers')
const INSTALL_TIMEOUT_MS = 120_000

/** Fills each `<name>` of a template in `bench/peers`. Returns the name of the written file. */
export function writeConfig(
  directory: string,
  template: string,
  values: Readonly<Record<string, string | number>>,
): string {
  const text = readFileSync(join(SOURCES, template), 'utf8')
  const file = join(directory, basename(template))
  writeFileSync(
    file,
    text.replace(/<(\w+)>/g, (_, name: string) => String(values[name])),
  )
  return file
}

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
