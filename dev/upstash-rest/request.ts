/**
 * Parses commands from an HTTP request, in every form of the Upstash REST API: a JSON array as the
 * body, an array of such arrays, or `/COMMAND/arg/arg?arg=arg` with the body as an argument.
 *
 * @see https://upstash.com/docs/redis/features/restapi
 */
import type { IncomingMessage } from 'node:http'
import { type Command, isStreaming } from './command.ts'
import { Refusal } from './refusal.ts'

/** The real service's limit for one request, 10 MB. */
const MAX_BODY_BYTES = 10 * 1024 * 1024

/** If a caller sends more than this, the connection is closed. */
const MAX_DROPPED_BYTES = 4 * MAX_BODY_BYTES

/** An integer that a double may not represent exactly. A match inside a string is harmless. */
const LONG_INTEGER = /[[,]\s*-?\d{16}/

const METHODS = new Set(['HEAD', 'GET', 'POST', 'PUT'])

/** The target of a request, split but not decoded. */
export interface Target {
  readonly path: string
  readonly query: string
}

export function targetOf(url: string): Target {
  const mark = url.indexOf('?')
  return mark === -1
    ? { path: url, query: '' }
    : { path: url.slice(0, mark), query: url.slice(mark + 1) }
}

/** Returns the method. Throws a 405 `Refusal` if the API does not support it. */
export function methodOf({ method = '' }: IncomingMessage): string {
  if (!METHODS.has(method)) throw new Refusal(405, 'ERR method not allowed')
  return method
}

/** Reports whether the caller accepts server-sent events. */
export const wantsEvents = ({ headers }: IncomingMessage): boolean =>
  headers.accept?.includes('text/event-stream') ?? false

/**
 * Reads the whole body. Throws a 413 `Refusal` as soon as it exceeds 10 MB. The rest is read and
 * discarded, because a caller that still sends might otherwise not receive the response.
 */
export function bodyOf(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    function refuse(): void {
      chunks.length = 0
      reject(new Refusal(413, `ERR max request size exceeded. Limit: ${MAX_BODY_BYTES} bytes`))
    }
    if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) refuse()
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAX_DROPPED_BYTES) request.destroy()
      else if (size > MAX_BODY_BYTES) refuse()
      else chunks.push(chunk)
    })
    request.on('end', () => resolve(Buffer.concat(chunks)))
    request.on('error', reject)
  })
}

/** Parses a command from a JSON array such as `["SET", "key", 1]`. Throws a 400 `Refusal`. */
export function commandOf(body: Buffer): Command {
  return parsedCommand(parsed(body))
}

/** Parses commands from a JSON array of arrays. Throws a 400 `Refusal`, also if it is empty. */
export function commandsOf(body: Buffer): readonly Command[] {
  const rows = parsed(body)
  if (!Array.isArray(rows)) throw new Refusal(400, 'ERR failed to parse pipeline request')
  if (rows.length === 0) throw new Refusal(400, 'ERR empty pipeline request')
  return rows.map(parsedCommand)
}

/**
 * Parses a command from a path: its segments, then the body if there is one, then the names and
 * values of the query, except `_token`. A name without a value is a flag: `/set/k/v?NX`.
 */
export function pathCommandOf({ path, query }: Target, body: Buffer): Command {
  const [name = '', ...args] = path.slice(1).split('/').map(decoded)
  const command = { name: name.toString().toUpperCase(), args }
  if (command.name === '') throw new Refusal(400, 'ERR empty command')
  // The client posts an empty array to `/subscribe/channel`.
  if (body.length > 0 && !isStreaming(command)) args.push(body)
  for (const [key, value] of pairs(query)) {
    if (key !== '_token') args.push(decoded(key), ...(value === '' ? [] : [decoded(value)]))
  }
  return command
}

/** Returns the query parameter `_token`, an alternative to the `Authorization` header. */
export function queryTokenOf({ query }: Target): string | undefined {
  if (!query.includes('_token=')) return undefined
  const value = pairs(query).find(([key]) => key === '_token')?.[1]
  return value === undefined ? undefined : decoded(value).toString()
}

/** Percent-decodes to bytes, so that bytes that are not UTF-8 are preserved. */
function decoded(text: string): Buffer {
  const bytes = text.replaceAll(/%([\da-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(bytes, 'latin1')
}

function pairs(query: string): [key: string, value: string][] {
  const fields = query.replaceAll('+', ' ').split('&').filter(Boolean)
  return fields.map((field) => {
    const [key = '', ...value] = field.split('=')
    return [key, value.join('=')]
  })
}

function parsed(body: Buffer): unknown {
  const text = body.toString()
  try {
    return LONG_INTEGER.test(text) ? JSON.parse(text, withExactNumbers) : JSON.parse(text)
  } catch (cause) {
    throw new Refusal(400, 'ERR failed to parse request: the body is not JSON', { cause })
  }
}

const withExactNumbers = (_key: string, value: unknown, context?: { source?: string }): unknown =>
  typeof value === 'number' ? (context?.source ?? value) : value

function parsedCommand(row: unknown): Command {
  if (!Array.isArray(row)) throw new Refusal(400, 'ERR failed to parse command: not a JSON array')
  const [name, ...args] = row.map(argument)
  if (!name) throw new Refusal(400, 'ERR empty command')
  return { name: name.toUpperCase(), args }
}

function argument(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw new Refusal(400, 'ERR failed to parse command: arguments are strings, numbers or booleans')
}
