/** The log of `portcullis serve`: one JSON object a line. */
import { format } from 'node:util'

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
 * Logs what this process writes to the console from now on. Members of a JSON object become fields.
 * Queries of URLs are omitted, because they may be secret.
 */
export function logConsole(log: Log): void {
  for (const [method, level] of Object.entries(LEVELS)) {
    console[method as keyof typeof LEVELS] = (...values: unknown[]) => {
      const text = format(...values).replace(QUERY, '')
      const { alarm, kind, ...fields } = membersOf(text)
      log(level, String(alarm ?? kind ?? text), fields)
    }
  }
}

function membersOf(text: string): Readonly<Record<string, unknown>> {
  if (!text.startsWith('{')) return {}
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}
