/** Runs a command of the project and waits for what it says. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { resolve } from 'node:path'

export const ROOT = resolve(import.meta.dirname, '../..')

export interface Running {
  readonly child: ChildProcess
  /** Everything printed so far. */
  output(): string
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<number | null>
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  await new Promise((done) => server.close(done))
  return port
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
    throw new Error(`${command.join(' ')} ended (${code}) before it said ${until}:\n${output}`)
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
