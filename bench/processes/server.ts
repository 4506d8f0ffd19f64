/** Starts a server as a child process, and waits until it listens. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { HOST } from '../../dev/start/settings.ts'
import { endWithParent } from './child.ts'

const START_TIMEOUT_MS = 15_000
const POLL_MS = 25
/** Maximum length of an error message in characters. */
const MAX_COMPLAINT = 400

export interface ServerOptions {
  readonly program: string
  readonly args: readonly string[]
  /** The environment, in addition to the search path of this process. */
  readonly env: Readonly<Record<string, string>>
  readonly port: number
  readonly directory: string
}

export interface Server {
  readonly url: string
  readonly pid: number
  close(): Promise<void>
}

/** Starts the server. Its log is discarded. Throws an `Error` of one line if it does not listen in time. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { program, args, env, port, directory } = options
  const child = spawn(program, args, {
    cwd: directory,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-MAX_COMPLAINT)
  })
  const close = endWithParent(child)
  try {
    await once(child, 'spawn')
    const end = Date.now() + START_TIMEOUT_MS
    while (!(await listens(port))) {
      if (hasEnded(child) || Date.now() > end)
        throw new Error(`does not start: ${complaints.trim().replace(/\s*\n\s*/g, ' ')}`)
      await sleep(POLL_MS)
    }
    return { url: `http://${HOST}:${port}`, pid: child.pid ?? 0, close }
  } catch (error) {
    await close()
    throw error
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

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null
