/**
 * Writes the replies of Redis the way the Upstash REST API does, by hand: this is the hot path,
 * and base64 needs no escaping.
 *
 * @see https://upstash.com/docs/redis/features/restapi
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isBytes, type Reply } from './command.ts'
import { Refusal } from './refusal.ts'

/** JSON with strings as text or as base64, or RESP2. */
export type Format = 'text' | 'base64' | 'resp2'

/** What goes back to the caller. */
export interface Answer {
  readonly status: number
  readonly type: string
  readonly body: string | Buffer
}

const LETTER_O = 0x4f
const LETTER_K = 0x4b

/** The form that the caller asked for. Throws a 400 `Refusal` if there is no such form. */
export function formatOf(headers: IncomingHttpHeaders): Format {
  const format = headers['upstash-response-format'] ?? 'json'
  const base64 = headers['upstash-encoding'] === 'base64'
  if (format === 'json') return base64 ? 'base64' : 'text'
  if (format !== 'resp2') throw new Refusal(400, 'ERR unsupported Upstash-Response-Format')
  if (base64) throw new Refusal(400, 'ERR resp2 responses cannot be base64 encoded')
  return format
}

/** The answer to one command: 400 if Redis answered with an error. */
export function encodeOne(reply: Reply, format: Format): Answer {
  const status = reply instanceof Error ? 400 : 200
  if (format === 'resp2') return octets(status, resp2(reply))
  return { status, type: 'application/json', body: resultJson(reply, format) }
}

/** The answer to several commands: each has its own result or error. */
export function encodeSeveral(replies: readonly Reply[], format: Format): Answer {
  if (format === 'resp2') return octets(200, Buffer.concat(replies.map(resp2)))
  const results = replies.map((reply) => resultJson(reply, format))
  return { status: 200, type: 'application/json', body: `[${results.join(',')}]` }
}

/** `{"error":"..."}`; errors are never base64. */
export const errorJson = (message: string): string => `{"error":${JSON.stringify(message)}}`

/** A result that is just `OK` is never base64 either. */
function resultJson(reply: Reply, format: 'text' | 'base64'): string {
  if (reply instanceof Error) return errorJson(reply.message)
  return isBytes(reply) && isOk(reply)
    ? '{"result":"OK"}'
    : `{"result":${valueJson(reply, format)}}`
}

/** In text, bytes that are no UTF-8 become U+FFFD, as in the real service. */
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

/** Statuses other than `OK` come as strings: the connection to Redis does not tell them apart. */
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
