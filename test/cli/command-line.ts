/**
 * Runs the command line as a separate process, as a shell does. It is the built one, as users have it: it
 * starts several times faster than its sources.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { builtPackage } from '../dev/start/build.ts'

/** Path of the program. */
export const CLI = join(await builtPackage(), 'portcullis.mjs')

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface CliEnvironment {
  /** The only variables of the process besides PATH and the cache of compiled code. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly input?: string
}

export interface RunningCommand {
  readonly ended: Promise<Outcome>
  /** Resolves when stdout or stderr matches; throws if the command ends first. */
  printed(what: RegExp): Promise<Outcome>
  kill(signal: NodeJS.Signals): void
}

/** Starts `portcullis <args>`. */
export function startCli(
  args: readonly string[],
  { cwd = '/', env = {}, input = '' }: CliEnvironment = {},
): RunningCommand {
  const child = spawn(process.execPath, [CLI, ...args], {
    cwd,
    env: {
      PATH: process.env.PATH ?? '',
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
      ...env,
    },
    stdio: 'pipe',
  })
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const output = { stdout: '', stderr: '' }
  const listeners = new Set<() => void>()
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
      for (const listener of listeners) listener()
    })
  }
  const ended = new Promise<Outcome>((resolve) => {
    child.once('close', (code) => resolve({ code, ...output }))
  })
  return {
    ended,
    kill: (signal) => void child.kill(signal),
    printed(what) {
      return new Promise((resolve, reject) => {
        const look = () => {
          if (what.test(output.stdout) || what.test(output.stderr))
            resolve({ code: null, ...output })
        }
        listeners.add(look)
        look()
        ended.then((outcome) => {
          look()
          reject(new Error(`ended before it printed ${what}: ${JSON.stringify(outcome)}`))
        })
      })
    },
  }
}

export function runCli(args: readonly string[], environment?: CliEnvironment): Promise<Outcome> {
  return startCli(args, environment).ended
}
