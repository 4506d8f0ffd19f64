/** Single keys of a terminal, as Vite and wrangler have them. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { ReadStream } from 'node:tty'

const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const CTRL_Z = '\u001a'

/** What a key does. */
export interface KeyAction {
  readonly key: string
  readonly does: string
  run(): unknown
}

export interface KeyOptions {
  readonly input: ReadStream
  readonly actions: readonly KeyAction[]
  /** Ends the program: Ctrl-C and Ctrl-D, which a terminal does not turn into signals in this mode. */
  quit(): void
  /** Ends the listening when it is aborted. */
  readonly signal: AbortSignal
}

/**
 * Reads keys until `signal`. Does nothing if `input` is not a terminal, or if this process is in the background: the
 * system would stop a background process that reads from its terminal. Returns whether it reads.
 */
export function listenToKeys({ input, actions, quit, signal }: KeyOptions): boolean {
  if (!input.isTTY || !isInForeground()) return false
  const byKey = new Map(actions.map((action) => [action.key, action]))
  function pressed(text: string): void {
    for (const key of text) {
      if (key === CTRL_C || key === CTRL_D) quit()
      else if (key === CTRL_Z) suspend()
      else void byKey.get(key.toLowerCase())?.run()
    }
  }
  function suspend(): void {
    input.setRawMode(false)
    process.kill(0, 'SIGTSTP')
  }
  const resume = () => {
    // After `bg`, the terminal belongs to another program.
    if (isInForeground()) input.setRawMode(true)
  }
  input.setRawMode(true).setEncoding('utf8').on('data', pressed).resume()
  process.on('SIGCONT', resume)
  signal.addEventListener('abort', () => {
    process.off('SIGCONT', resume)
    input.off('data', pressed).setRawMode(false).pause()
  })
  return true
}

/** Returns the help: a line for each key. */
export const keyHelp = (actions: readonly KeyAction[]): string =>
  actions.map(({ key, does }) => `  ${key}  ${does}`).join('\n')

/** Whether the process belongs to the foreground group of its terminal. */
function isInForeground(): boolean {
  if (process.platform === 'win32') return true
  try {
    return foregroundByProc()
  } catch {
    try {
      const args = ['-o', 'stat=', '-p', String(process.pid)]
      return execFileSync('ps', args, { encoding: 'utf8' }).includes('+')
    } catch {
      return false
    }
  }
}

/** Reads `/proc/self/stat`: fields 5 and 8, counted from behind the name, which may have spaces. */
function foregroundByProc(): boolean {
  const text = readFileSync('/proc/self/stat', 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return fields[2] === fields[5]
}
