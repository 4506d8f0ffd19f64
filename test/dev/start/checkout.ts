/** A separate checkout in a temporary folder, and the commands that a user runs in it. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../../harness/process.ts'

/** What a checkout needs to start and to build, by path from the root. */
export const FILES = [
  ...['cli', 'dev', 'examples', 'migrations', 'schemas', 'src', 'workers', 'package.json'],
  ...['tsconfig.json', 'tsconfig.build.json', 'tsdown.config.ts'],
  ...['wrangler.toml', 'portcullis.config.ts', 'portcullis.fga', 'portcullis.model.json'],
]

/** Folders of state that wrangler leaves beside its configuration. */
const LEFTOVERS = ['.wrangler', 'workers/.wrangler']

/** Variables of the machine or of the surrounding npm that must not influence the tests. */
const FOREIGN =
  /^(npm_|INIT_CWD$|PORT$|REDIS_URL$|REDIS_TIMEOUT_MS$|REDIS_PREFIX$|UPSTASH_|ORIGIN_URL$|ISSUERS$|PORTCULLIS_|PUBLIC_URL$|SIGNING_KEYS$|CLIENTS$|CLOUDFLARE_)/

/** On a busy machine Redis may answer late. That is an outage only in tests of outages. */
const PATIENT = { REDIS_TIMEOUT_MS: '5000' }

export interface Outcome {
  /** Null after a signal. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Command {
  readonly child: ChildProcess
  readonly pid: number
  readonly ended: Promise<Outcome>
  /** The stderr output so far. */
  stderr(): string
  /** Resolves when stdout or stderr matches; throws if the command ends first. */
  printed(what: RegExp): Promise<Outcome>
}

export interface Checkout {
  readonly path: string
  file(name: string): Promise<string>
  run(command: readonly [string, ...string[]], env?: Record<string, string>): Command
  /** Ends running processes and removes the folder. */
  close(): Promise<void>
}

/** Creates the first free folder of a numbered series. The compile cache needs equal paths in each run. */
async function makeFolder(): Promise<string> {
  for (let number = 1; ; number++) {
    const path = join(tmpdir(), `portcullis-checkout-${number}`)
    try {
      await mkdir(path, 0o700)
      return path
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

export async function makeCheckout(): Promise<Checkout> {
  const path = await makeFolder()
  // `fs.cp` takes twice as long for two thousand files.
  await promisify(execFile)('cp', ['-R', ...FILES, path], { cwd: ROOT })
  for (const name of LEFTOVERS) await rm(join(path, name), { recursive: true, force: true })
  await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'))
  const commands: Command[] = []
  return {
    path,
    file: (name) => readFile(join(path, name), 'utf8'),
    run(command, env = {}) {
      const running = runIn(path, command, env)
      commands.push(running)
      return running
    },
    async close() {
      for (const { child } of commands) child.kill('SIGTERM')
      await Promise.all(commands.map(({ ended }) => ended))
      await rm(path, { recursive: true, force: true })
    },
  }
}

/** Starts a command in the folder `cwd`. */
export function runIn(
  cwd: string,
  [file, ...args]: readonly [string, ...string[]],
  env: Record<string, string> = {},
): Command {
  const own = Object.entries(process.env).filter(([name]) => !FOREIGN.test(name))
  const child = spawn(file, args, {
    cwd,
    env: { ...Object.fromEntries(own), ...PATIENT, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  }
  const ended = new Promise<Outcome>((resolve) => {
    child.once('close', (code) => resolve({ code, ...output }))
  })
  return {
    child,
    pid: child.pid ?? 0,
    ended,
    stderr: () => output.stderr,
    printed(what) {
      const printed = new Promise<Outcome>((resolve) => {
        const look = () => {
          const heard = what.test(output.stdout) || what.test(output.stderr)
          if (heard) resolve({ code: null, ...output })
        }
        for (const stream of [child.stdout, child.stderr]) stream.on('data', look)
        look()
      })
      const early = ended.then((outcome) => {
        throw new Error(`${file} ended before it printed ${what}:\n${JSON.stringify(outcome)}`)
      })
      early.catch(() => undefined)
      return Promise.race([printed, early])
    },
  }
}
