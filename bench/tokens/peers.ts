/** The same work in other languages, on the same machine, on one core. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../../dev/start/settings.ts'
import { rounded } from '../measure/statistics.ts'

const SOURCES = join(ROOT, 'bench', 'peers')
/** Kept between runs; ignored by git. */
const PYTHON_ENVIRONMENT = join(ROOT, '.wrangler', 'bench-python')
const PYTHON_PACKAGES = ['pyjwt', 'cryptography']
/** The standard library compiles once; packages are downloaded once. */
const PREPARE_TIMEOUT_MS = 90_000
const RUN_TIMEOUT_MS = 120_000
const DIGITS = 3

/** The results of one language. */
export interface Peer {
  readonly name: string
  /** Of the language and its libraries. */
  readonly version: string
  /** Microseconds for one operation, by the operations' ids. */
  readonly micros: Readonly<Record<string, number>>
}

export interface Peers {
  readonly measured: readonly Peer[]
  /** Languages that are missing or failed. */
  readonly skipped: readonly { readonly name: string; readonly reason: string }[]
}

export interface PeersOptions {
  /** Duration of each operation. */
  readonly seconds: number
  /** Directory for compiled programs. */
  readonly directory: string
  readonly signal: AbortSignal
  readonly onProgress: (what: string) => void
}

type Run = (options: PeersOptions) => Promise<string>

const RUNS: Readonly<Record<string, Run>> = {
  async Go({ seconds, directory, signal }) {
    const program = join(directory, 'go-tokens')
    const source = join(SOURCES, 'tokens.go')
    // The program needs only the standard library, so nothing is downloaded.
    const env = { ...process.env, GOTOOLCHAIN: 'local', GOPROXY: 'off', GO111MODULE: 'off' }
    const building = { env, signal, timeout: PREPARE_TIMEOUT_MS }
    await run('go', ['build', '-o', program, source], building)
    return run(program, [String(seconds)], { signal, timeout: RUN_TIMEOUT_MS })
  },
  async Python({ seconds, signal }) {
    const python = join(PYTHON_ENVIRONMENT, 'bin', 'python')
    const preparing = { signal, timeout: PREPARE_TIMEOUT_MS }
    if (!existsSync(python)) await run('python3', ['-m', 'venv', PYTHON_ENVIRONMENT], preparing)
    await run(python, ['-c', 'import jwt, cryptography'], preparing).catch(() =>
      run(python, ['-m', 'pip', 'install', '--quiet', ...PYTHON_PACKAGES], preparing),
    )
    const program = join(SOURCES, 'tokens.py')
    return run(python, [program, String(seconds)], { signal, timeout: RUN_TIMEOUT_MS })
  },
}

/** Measures the available languages. `skipped` has the others, with the reason. */
export async function measurePeers(options: PeersOptions): Promise<Peers> {
  const measured: Peer[] = []
  const skipped: { name: string; reason: string }[] = []
  for (const [name, measure] of Object.entries(RUNS)) {
    options.onProgress(`peer: ${name}`)
    try {
      measured.push(parsePeer(name, await measure(options)))
    } catch (error) {
      options.signal.throwIfAborted()
      skipped.push({ name, reason: reasonOf(error as Error) })
    }
  }
  return { measured, skipped }
}

/** Parses the output of a program: its version, then a line for each operation. */
export function parsePeer(name: string, output: string): Peer {
  const [first, ...lines] = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { version?: string; id?: string; micros?: number })
  if (first?.version === undefined) throw new Error('missing version')
  const micros: Record<string, number> = {}
  for (const { id, micros: each } of lines) {
    if (id === undefined || !(each !== undefined && each > 0)) throw new Error('missing figures')
    micros[id] = rounded(each, DIGITS)
  }
  return { name, version: first.version, micros }
}

async function run(
  program: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; signal: AbortSignal; timeout: number },
): Promise<string> {
  return (await promisify(execFile)(program, args, { ...options, encoding: 'utf8' })).stdout
}

/** Returns one line, without the command. */
function reasonOf(error: Error & { code?: unknown; stderr?: string }): string {
  if (error.code === 'ENOENT') return 'not on this machine'
  const complaint = (error.stderr ?? '').trim().split('\n').at(-1) ?? ''
  return complaint === '' ? (error.message.split('\n')[0] ?? '') : complaint
}
