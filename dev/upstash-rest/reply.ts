/**
 * Formats Redis replies in the same way as the Upstash REST API. It builds the JSON itself, because
 * this is the hot path and base64 needs no escaping.
 *
 * @see https://upstash.com/docs/redis/features/restapi
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isBytes, type Reply } from './command.ts'
import { Refusal } from './refusal.ts'

/** JSON with strings as text or as base64, or RESP2. */
export type Format = 'text' | 'base64' | 'resp2'

/** A response to the caller. */
export interface Answer {
  readonly status: number
  readonly type: string
  readonly body: string | Buffer
}

const LETTER_O = 0x4f
const LETTER_K = 0x4b

/** Returns the format that the headers request. Throws a 400 `Refusal` if it does not exist. */
export function formatOf(headers: IncomingHttpHeaders): Format {
  const format = headers['upstash-response-format'] ?? 'json'
  const base64 = headers['upstash-encoding'] === 'base64'
  if (format === 'json') return base64 ? 'base64' : 'text'
  if (format !== 'resp2') throw new Refusal(400, 'ERR unsupported Upstash-Response-Format')
  if (base64) throw new Refusal(400, 'ERR resp2 responses cannot be base64 encoded')
  return format
}

/** Formats the reply to one command. The status is 400 for an error reply. */
export function encodeOne(reply: Reply, format: Format): Answer {
  const status = reply instanceof Error ? 400 : 200
  if (format === 'resp2') return octets(status, resp2(reply))
  return { status, type: 'application/json', body: resultJson(reply, format) }
}

/** Formats the replies to several commands. Each has its own result or error. */
export function encodeSeveral(replies: readonly Reply[], format: Format): Answer {
  if (format === 'resp2') return octets(200, Buffer.concat(replies.map(resp2)))
  const results = replies.map((reply) => resultJson(reply, format))
  return { status: 200, type: 'application/json', body: `[${results.join(',')}]` }
}

/** Formats `{"error":"..."}`. Errors are never base64. */
export const errorJson = (message: string): string => `{"error":${JSON.stringify(message)}}`

/** Formats one result. The result `OK` is never base64 either. */
function resultJson(reply: Reply, format: 'text' | 'base64'): string {
  if (reply instanceof Error) return errorJson(reply.message)
  return isBytes(reply) && isOk(reply)
    ? '{"result":"OK"}'
    : `{"result":${valueJson(reply, format)}}`
}

/** Formats a value. In text, bytes that are not UTF-8 become U+FFFD, as in the real service. */
function valueJson(reply: Reply, format: 'text' | 'base64'): string {
  if (reply === null) return 'null'
  if (typeof reply === 'string') return reply
  if (reply instanceof Error) return valueJson(Buffer.from(reply.message), format)
  if (!isBytes(reply)) return `[${reply.map((item) => valueJson(item, format)).join(',')}]`
  return format === 'base64' ? `"${reply.toString('base64')}"` : JSON.stringify(reply.toString())
}

const octets = (status: number, body: Buffer): Answer => ({
  status,
  type: 'application/octet-stream',
  body,
})

/**
 * Formats a reply as RESP2. Simple strings other than `OK` become bulk strings, because the
 * connection to Redis does not distinguish them.
 */
function resp2(reply: Reply): Buffer {
  if (reply === null) return Buffer.from('$-1\r\n')
  if (typeof reply === 'string') return Buffer.from(`:${reply}\r\n`)
  if (reply instanceof Error) return Buffer.from(`-${reply.message}\r\n`)
  if (!isBytes(reply)) {
    return Buffer.concat([Buffer.from(`*${reply.length}\r\n`), ...reply.map(resp2)])
  }
  if (isOk(reply)) return Buffer.from('+OK\r\n')
  return Buffer.concat([Buffer.from(`$${reply.length}\r\n`), reply, Buffer.from('\r\n')])
}

const isOk = (reply: Buffer): boolean =>
  reply.length === 2 && reply[0] === LETTER_O && reply[1] === LETTER_K
