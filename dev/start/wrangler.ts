/** Runs wrangler as a child process group, and extracts errors from its output. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { ROOT } from './settings.ts'

/** Path of the program in this checkout. Run it with the current Node. */
export const WRANGLER = join(ROOT, 'node_modules', 'wrangler', 'bin', 'wrangler.js')
const LEASH = join(dirname(fileURLToPath(import.meta.url)), 'leash.mjs')

const KEPT_LINES = 200
const GRACE_MS = 5_000
const KILL_TIMEOUT_MS = 5_000
const POLL_MS = 25

/**
 * No prompts, no news, no network requests, and no extra page next to the gateway. The level of messages is the
 * default, whatever the caller's is, because the lines of a start are read.
 */
const QUIET = {
  WRANGLER_LOG: 'log',
  CI: 'true',
  NO_COLOR: '1',
  FORCE_COLOR: '0',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  WRANGLER_HIDE_BANNER: 'true',
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_SEND_ERROR_REPORTS: 'false',
  X_LOCAL_EXPLORER: 'false',
  X_LOCAL_OBSERVABILITY: 'false',
}

/** A wrangler and all its child processes (workerd, esbuild), as one process group. */
export interface Wrangler {
  /** Resolves with wrangler's exit code when it has ended; null after a signal. */
  readonly ended: Promise<number | null>
  /** Returns the latest lines of output, without colors. */
  lines(): readonly string[]
  /** Calls `listener` with each line from now on. */
  follow(listener: (line: string) => void): void
  /** Ends the whole group, by force if necessary, and resolves when no process of it is left. */
  stop(): Promise<void>
}

/** Where wrangler runs. */
export interface Workshop {
  /** Absolute path of the folder with the configurations. */
  readonly root: string
  /** Path of the program. */
  readonly wrangler: string
}

const CHECKOUT: Workshop = { root: ROOT, wrangler: WRANGLER }

/**
 * Starts wrangler without a terminal, by default in the checkout. `args` must not contain secrets,
 * because any user of the machine can read them. Logs and the registry of running Workers go to
 * `directory`.
 */
export function startWrangler(
  args: readonly string[],
  directory: string,
  { root, wrangler } = CHECKOUT,
): Wrangler {
  const child = spawn(process.execPath, ['--import', LEASH, wrangler, ...args], {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ...QUIET,
      WRANGLER_LOG_PATH: join(directory, 'logs'),
      WRANGLER_REGISTRY_PATH: join(directory, 'registry'),
    },
  })
  const kept: string[] = []
  const listeners: ((line: string) => void)[] = []
  function keep(line: string): void {
    kept.push(line)
    if (kept.length > KEPT_LINES) kept.shift()
    for (const listener of listeners) listener(line)
  }
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) readOutput(stream, keep)
  }
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= endGroup(child)
    return stopped
  }
  const ended = once(child, 'close').then(async ([code]) => {
    // Only once and at once, because the group's id may later belong to another process.
    await stop()
    return code as number | null
  })
  return { ended, lines: () => kept, follow: (listener) => void listeners.push(listener), stop }
}

/**
 * Calls `listener` with each line, without colors. Omits the goroutines that esbuild prints if wrangler ends
 * during a build: hundreds of lines, which would replace the error that wrangler has printed before.
 */
function readOutput(stream: Readable, listener: (line: string) => void): void {
  let isDump = false
  createInterface({ input: stream }).on('line', (text) => {
    const line = stripVTControlCharacters(text)
    isDump = GOROUTINES.test(line) || (isDump && line === '')
    if (!isDump) listener(line)
  })
}

/** Returns the error message from wrangler's last lines. Omits warnings and other output. */
export function complaint(lines: readonly string[]): string {
  const misconfigured = MISCONFIGURED.exec(lines.join('\n'))
  if (misconfigured) return misconfigured[0].trimEnd().replace(/^\s+- /gm, '  - ')
  const first = lines.findIndex((line) => line.includes(ERROR_MARK))
  let inWarning = false
  return lines
    .slice(Math.max(first, 0))
    .filter((line) => {
      if (/^\S/.test(line)) inWarning = line.includes('[WARNING]')
      return line.trim() !== '' && !inWarning && !CHATTER.test(line)
    })
    .map((line) => line.replace(ERROR_MARK, '').replace(/^service core:user:\w+: /, ''))
    .join('\n')
}

/**
 * Returns why the Workers failed to start, without unrelated output. Returns undefined if they did
 * not fail to start.
 */
export function complaintOfFailure(lines: readonly string[]): string | undefined {
  const failed = lines.findLastIndex((line) => line.includes(FAILED_TO_START))
  if (failed === -1) return undefined
  const cause = lines.findLastIndex(
    (line, index) => index < failed && line.startsWith(ERROR_MARK + WORKER),
  )
  return complaint(lines.slice(Math.max(cause, 0))) || 'the Workers do not start'
}

const FAILED_TO_START = 'runtime failed to start'
const WORKER = 'service core:user:'
const ERROR_MARK = '✘ [ERROR] '
/** The message of the project's own error `Misconfigured`. */
const MISCONFIGURED = /\w+ \w+ is not valid:\n(?:\s+- .*\n?)+/
/** A line of Go's report of a deadlock: its first line, a goroutine, a function with its arguments, or a place. */
const GOROUTINES =
  /^(fatal error: all goroutines are asleep|goroutine \d+ |created by \S+ in goroutine \d|[\w.]+[/.][^\s()]*\S*\([\w{}?,. ]*\)$|\t\S+\.go:\d+)/
const CHATTER =
  /Logs were written to|If you think this is a bug|runtime failed to start|^\s+(Runtime stderr:|\{?"timestamp")/

async function endGroup(child: ChildProcess): Promise<void> {
  const { pid } = child
  if (pid === undefined) return
  signalGroup(pid, 'SIGTERM')
  if (await goneWithin(pid, GRACE_MS)) return
  signalGroup(pid, 'SIGKILL')
  await goneWithin(pid, KILL_TIMEOUT_MS)
}

async function goneWithin(group: number, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs
  while (signalGroup(group, 0)) {
    if (Date.now() > deadline) return false
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  return true
}

/** Sends a signal to a process group. Returns whether the group exists. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal)
    return true
  } catch {
    return false
  }
}
