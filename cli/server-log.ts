/** The log of `portcullis serve`: one JSON object a line. */

import { format } from 'node:util'
import { objectIn } from './json.ts'

/** Writes a line. `fields` have no secrets and no queries of URLs. */
export type Log = (
  level: 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

const LEVELS = { debug: 'info', info: 'info', log: 'info', warn: 'warn', error: 'error' } as const

/** The query and the fragment of a URL. */
const QUERY = /(?<=https?:\/\/[^\s?#"]*)[?#][^\s"]*/g

/** Returns a log that writes to `output`. The time is RFC 3339 in UTC. */
export function createLog(output: { write(text: string): unknown }): Log {
  return function log(level, message, fields) {
    const time = new Date().toISOString()
    const line = { level, time, pid: process.pid, message, ...fields }
    output.write(`${JSON.stringify(line)}\n`)
  }
}

/**
 * Logs each text that this process and its threads write to stderr from now on. This includes warnings
 * and Node's report of an error that no code caught. Returns a function that ends this.
 */
export function logStderr(log: Log, stderr: NodeJS.WriteStream = process.stderr): () => void {
  const write = stderr.write
  let rest = ''
  stderr.write = (chunk: string | Uint8Array, ...more: unknown[]): boolean => {
    const text = rest + (typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString())
    const end = text.lastIndexOf('\n') + 1
    rest = text.slice(end)
    if (end > 1) logText(log, 'error', text.slice(0, end - 1))
    const done = more.at(-1)
    if (typeof done === 'function') queueMicrotask(() => done())
    return true
  }
  const warn = ({ name, message }: Error) => log('warn', `${name}: ${message}`)
  const defaults = process.listeners('warning')
  process.removeAllListeners('warning').on('warning', warn)
  process.on('uncaughtException', endWith)
  function endWith(error: unknown): void {
    log('error', error instanceof Error ? (error.stack ?? error.message) : 'not an error')
    process.exit(1)
  }
  return function end() {
    stderr.write = write
    process.off('uncaughtException', endWith).off('warning', warn)
    for (const listener of defaults) process.on('warning', listener)
  }
}

/**
 * Logs what this process writes to the console from now on. Members of a JSON object become fields.
 * Queries of URLs are omitted, because they may be secret.
 */
export function logConsole(log: Log): void {
  for (const [method, level] of Object.entries(LEVELS)) {
    console[method as keyof typeof LEVELS] = (...values: unknown[]) => {
      logText(log, level, format(...values))
    }
  }
}

function logText(log: Log, level: 'info' | 'warn' | 'error', written: string): void {
  const text = written.replace(QUERY, '')
  const { alarm, kind, ...fields } = membersOf(text)
  log(level, String(alarm ?? kind ?? text), fields)
}

const membersOf = (text: string): Readonly<Record<string, unknown>> => ({
  ...(text.startsWith('{') && objectIn(text)),
})
