/** Runs a command of the project and waits for its output. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { resolve } from 'node:path'

export { freePort } from '../../dev/free-port.ts'

export const ROOT = resolve(import.meta.dirname, '../..')

export interface Running {
  readonly child: ChildProcess
  /** Returns everything printed so far. */
  output(): string
  /** Sends SIGTERM and waits for the exit. Returns the exit code. */
  stop(): Promise<number | null>
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
