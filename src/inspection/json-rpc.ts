/** Parses JSON-RPC 2.0 messages, and refuses those that servers could read differently. */
import { Denied } from '../errors.ts'
import type { JsonRpcCheck } from '../problems/checks.ts'

/** A request or a notification: a message that calls a method of the server. */
export interface JsonRpcCall {
  readonly method: string
  /** An object or an array; undefined if there are none. */
  readonly params: object | undefined
  /** JSON Pointer (RFC 6901) of the message in the body: empty, or `/2` in a batch. */
  readonly pointer: string
}

/** Members of each kind of message. Case matters: some JSON parsers read `Method` as `method`. */
const REQUEST_MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params'])
const RESPONSE_MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'result', 'error'])
const ERROR_MEMBERS: ReadonlySet<string> = new Set(['code', 'message', 'data'])
const MAX_ID_CHARS = 256

/** The ids that the requests, or the responses, of a body have used so far. */
type SeenIds = Set<string | number>

/**
 * Returns the calls (requests and notifications) in a parsed body, a single message or a batch of 1
 * to `maxBatch`. Throws `Denied` (`malformed_request`) for the whole body if one message is not
 * well formed:
 *
 * - A message has exactly one of `method`, `result` and `error`. Otherwise a server that looks for
 *   `method` first would execute a message that another server reads as a response.
 * - It has no member that the specification does not define for its kind.
 * - `params` is an object or an array.
 * - `id` is a string of at most 256 characters or a safe integer (section 4 discourages null and
 *   fractions, MCP forbids null), and unique in the batch among requests or among responses. A
 *   response has an `id`; that of an error may be null (section 5).
 * - `error` has an integer `code` and a string `message`.
 *
 * Responses answer requests of the server, such as MCP's `sampling/createMessage`. They call
 * nothing, so they are checked for their form and not returned.
 *
 * Does NOT check that a method exists, or that the server made the request of a response.
 */
export function parseCalls(body: unknown, maxBatch: number): readonly JsonRpcCall[] {
  const requestIds: SeenIds = new Set()
  const responseIds: SeenIds = new Set()
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body]
  if (messages.length === 0 || messages.length > maxBatch) throw malformedCall('batch')
  return messages.flatMap((message, index) => {
    if (!isRecord(message)) throw malformedCall('message')
    const kinds = ['method', 'result', 'error'].filter((name) => Object.hasOwn(message, name))
    if (kinds.length > 1) throw malformedCall('ambiguous')
    const isResponse = kinds.length > 0 && kinds[0] !== 'method'
    refuseOthers(message, isResponse ? RESPONSE_MEMBERS : REQUEST_MEMBERS, 'member')
    if (message.jsonrpc !== '2.0') throw malformedCall('version')
    if (!isResponse)
      return [requestCall(message, Array.isArray(body) ? `/${index}` : '', requestIds)]
    checkResponse(message, responseIds)
    return []
  })
}

function requestCall(message: JsonObject, pointer: string, ids: SeenIds): JsonRpcCall {
  const { method, params } = message
  if (typeof method !== 'string') throw malformedCall('method')
  if (params !== undefined && (typeof params !== 'object' || params === null))
    throw malformedCall('params')
  if ('id' in message) refuseSeenId(message.id, ids)
  return { method, params, pointer }
}

function checkResponse(message: JsonObject, ids: SeenIds): void {
  const { id, error } = message
  const isError = 'error' in message
  if (!(isError && id === null)) refuseSeenId(id, ids)
  if (!isError) return
  if (!isRecord(error)) throw malformedCall('error')
  refuseOthers(error, ERROR_MEMBERS, 'error')
  if (!Number.isSafeInteger(error.code) || typeof error.message !== 'string')
    throw malformedCall('error')
}

/** Throws `malformedCall(what)` if an object has another member. */
export function refuseOthers(
  value: object,
  members: ReadonlySet<string>,
  what: JsonRpcCheck,
): void {
  for (const name of Object.keys(value)) if (!members.has(name)) throw malformedCall(what)
}

function refuseSeenId(id: unknown, ids: Set<string | number>): void {
  if (!isId(id) || ids.has(id)) throw malformedCall('id')
  ids.add(id)
}

/** Reports whether a value is an id that the gateway accepts: a short text or a safe integer. */
export function isId(id: unknown): id is string | number {
  return typeof id === 'string' ? id.length <= MAX_ID_CHARS : Number.isSafeInteger(id)
}

export type JsonObject = Readonly<Record<string, unknown>>

/** Reports whether a parsed JSON value is an object. */
export function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function malformedCall(what: JsonRpcCheck): Denied {
  return new Denied({ code: 'malformed_request', check: `json_rpc_${what}` })
}
