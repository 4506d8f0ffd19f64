/** Runs the command line as a process of its own, as a shell would. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { ROOT } from '../harness/process.ts'

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Surroundings {
  /** Nothing else of the environment is there, but the PATH. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly input?: string
}

export interface RunningCommand {
  readonly ended: Promise<Outcome>
  /** Resolves when stdout or stderr matches; throws if the command ends before. */
  said(what: RegExp): Promise<Outcome>
  kill(signal: NodeJS.Signals): void
}

/** Starts `portcullis <args>`. */
export function startCli(args: readonly string[], surroundings: Surroundings = {}): RunningCommand {
  const child = spawn(process.execPath, [join(ROOT, 'cli/main.ts'), ...args], {
    cwd: surroundings.cwd ?? '/',
    env: { PATH: process.env.PATH ?? '', ...surroundings.env },
    stdio: 'pipe',
  })
  child.stdin.on('error', () => undefined)
  child.stdin.end(surroundings.input ?? '')
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
    said(what) {
      return new Promise((resolve, reject) => {
        const look = () => {
          if (what.test(output.stdout) || what.test(output.stderr))
            resolve({ code: null, ...output })
        }
        listeners.add(look)
        look()
        ended.then((outcome) => {
          look()
          reject(new Error(`ended before it said ${what}: ${JSON.stringify(outcome)}`))
        })
      })
    },
  }
}

export function runCli(args: readonly string[], surroundings?: Surroundings): Promise<Outcome> {
  return startCli(args, surroundings).ended
}
