/** Starts another gateway as a child process, and waits until it listens. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { HOST } from '../../dev/start/settings.ts'

const START_TIMEOUT_MS = 15_000
const STOP_TIMEOUT_MS = 3_000
const POLL_MS = 25
/** Maximum length of an error message in characters. */
const MAX_COMPLAINT = 160

export interface ServerOptions {
  readonly program: string
  readonly args: readonly string[]
  /** The complete environment. Default: only the search path of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** Its configured port on loopback. */
  readonly port: number
  /** Temporary directory. Its name is removed from error messages. */
  readonly directory: string
}

export interface Server {
  readonly url: string
  readonly pid: number
  close(): Promise<void>
}

/**
 * Starts the server. Throws an `Error` of one line if the program is missing, ends, or does not
 * listen in time.
 */
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
  const killWithParent = () => child.kill('SIGKILL')
  process.once('exit', killWithParent)
  const close = async () => {
    await stop(child)
    process.off('exit', killWithParent)
  }
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

async function stop(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  await exited
  clearTimeout(timer)
}
