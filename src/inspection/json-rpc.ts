/** Messages of JSON-RPC 2.0 from a client: well formed, and read alike by every server. */
import { Denied } from '../errors.ts'

/** A request or notification. */
export interface JsonRpcCall {
  readonly method: string
  /** An object or an array; undefined where there are none. */
  readonly params: object | undefined
  /** JSON Pointer (RFC 6901) of the message in the body: empty, or `/2` in a batch. */
  readonly pointer: string
}

/** Section 4. Exact: some parsers of JSON take `Method` for `method`. */
const MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params'])
const MAX_ID_CHARS = 256

/**
 * The calls in a parsed body, a single message or a batch of 1 to `maxBatch`. Throws `Denied`
 * (`request_malformed`) for the whole of it where one message is not well formed: another version,
 * a member that the specification does not have, `params` that are no object or array, an `id` that
 * is no text of at most 256 characters and no safe integer (null and fractions are discouraged by
 * section 4, and null is forbidden by MCP), or an `id` that stands twice in the batch. Responses to
 * a server's own requests are refused, too: they have no method.
 *
 * Does NOT know which methods there are.
 */
export function callsOf(body: unknown, maxBatch: number): readonly JsonRpcCall[] {
  const ids = new Set<string | number>()
  if (!Array.isArray(body)) return [callOf(body, '', ids)]
  if (body.length === 0 || body.length > maxBatch) throw malformedCall('batch')
  return body.map((message, index) => callOf(message, `/${index}`, ids))
}

function callOf(message: unknown, pointer: string, ids: Set<string | number>): JsonRpcCall {
  if (!isRecord(message)) throw malformedCall('message')
  for (const name of Object.keys(message)) if (!MEMBERS.has(name)) throw malformedCall('member')
  const { jsonrpc, method, params } = message
  if (jsonrpc !== '2.0') throw malformedCall('version')
  if (typeof method !== 'string') throw malformedCall('method')
  if (params !== undefined && (typeof params !== 'object' || params === null))
    throw malformedCall('params')
  if ('id' in message) {
    const { id } = message
    if (!isId(id) || ids.has(id)) throw malformedCall('id')
    ids.add(id)
  }
  return { method, params, pointer }
}

function isId(id: unknown): id is string | number {
  return typeof id === 'string' ? id.length <= MAX_ID_CHARS : Number.isSafeInteger(id)
}

/** Whether a parsed JSON value is an object. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The refusal (400) whose precise reason is `json_rpc_<what>`. */
export function malformedCall(what: string): Denied {
  return new Denied({ code: 'request_malformed', check: `json_rpc_${what}` })
}
