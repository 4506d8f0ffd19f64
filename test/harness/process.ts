/** Runs a command of the project and waits for its output. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createServer } from 'node:net'
import { resolve } from 'node:path'

export const ROOT = resolve(import.meta.dirname, '../..')

export interface Running {
  readonly child: ChildProcess
  /** Returns everything printed so far. */
  output(): string
  /** Sends SIGTERM and waits for the exit. Returns the exit code. */
  stop(): Promise<number | null>
}

/**
 * Below the ephemeral ports of the system, apart from the fault proxies, and above the last port
 * that `fetch` blocks (10080, https://fetch.spec.whatwg.org/#port-blocking).
 */
const FIRST_PORT = 11_000
const PORTS = 9_000
/** The maximum number of concurrent test workers. Each has its own ports. */
const MAX_WORKERS = 10
const WORKER = Number(process.env.VITEST_POOL_ID ?? 0) % MAX_WORKERS
const given = new Set<number>()

/**
 * Returns a free loopback port that no other caller gets until this process ends, so that a slow
 * start cannot lose it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port =
      FIRST_PORT + MAX_WORKERS * Math.floor((Math.random() * PORTS) / MAX_WORKERS) + WORKER
    if (given.has(port) || !(await canListen(port))) continue
    given.add(port)
    return port
  }
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** Starts `command` in the project and resolves when it has printed `until`. */
export async function run(
  command: readonly [string, ...string[]],
  env: Record<string, string>,
  until: string | RegExp,
): Promise<Running> {
  const [file, ...args] = command
  const child = spawn(file, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const ended = new Promise<number | null>((done) => child.once('exit', done))
  const said = new Promise<void>((done) => {
    const listen = (chunk: Buffer) => {
      output += chunk.toString()
      if (typeof until === 'string' ? output.includes(until) : until.test(output)) done()
    }
    child.stdout.on('data', listen)
    child.stderr.on('data', listen)
  })
  const early = ended.then((code) => {
    throw new Error(`${command.join(' ')} exited (${code}) before it printed ${until}:\n${output}`)
  })
  await Promise.race([said, early])
  early.catch(() => undefined)
  return {
    child,
    output: () => output,
    stop() {
      child.kill('SIGTERM')
      return ended
    },
  }
}

/** Reports whether a program is on the PATH. It is started with `--version`. */
export const isInstalled = (program: string): boolean =>
  spawnSync(program, ['--version']).error === undefined
