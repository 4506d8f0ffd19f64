/** Builds the request of a test from its short form. */
import { isAuthorization, type TokenSource } from '../validators/token-source.ts'

export interface RequestParts {
  /** Text, bytes, a form or a stream is sent as it is. Any other value is sent as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** A method, a space, and a path with an optional query. */
const FORM = /^(?<method>[A-Z]+) (?<target>\/\S*)$/

/**
 * Creates a request to `base` for a line such as `GET /orders/1?page=2`. `added` are headers that
 * `headers` may replace. Throws `TypeError` for any other line.
 */
export function parseRequest(
  base: string,
  line: string,
  { body, headers }: RequestParts,
  added: Readonly<Record<string, string>>,
): Request {
  const { method, target } = FORM.exec(line)?.groups ?? {}
  if (method === undefined || target === undefined)
    throw new TypeError(`request: ${JSON.stringify(line)} must have the form "GET /path"`)
  const fields = new Headers({ ...added, ...headers })
  if (body === undefined) return new Request(base + target, { method, headers: fields })
  const isJson = !isBody(body)
  if (isJson && !fields.has('content-type')) fields.set('content-type', 'application/json')
  const sent = isJson ? JSON.stringify(body) : body
  // As HTTP clients do for a body of known length: a body that is too large is refused early.
  if (typeof sent === 'string' && !fields.has('content-length'))
    fields.set('content-length', String(new TextEncoder().encode(sent).byteLength))
  const init = {
    method,
    headers: fields,
    body: sent,
    // The Fetch standard requires this for a body that streams.
    duplex: 'half',
  }
  return new Request(base + target, init)
}

function isBody(body: unknown): body is NonNullable<RequestInit['body']> {
  return (
    typeof body === 'string' ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof Blob ||
    body instanceof FormData ||
    body instanceof URLSearchParams ||
    body instanceof ReadableStream
  )
}

/** Returns the header that presents a credential. `scheme` is that of `Authorization`. */
export function credentialHeader(
  credential: string,
  source: TokenSource = { header: 'Authorization' },
  scheme: 'Bearer' | 'DPoP' = 'Bearer',
): Readonly<Record<string, string>> {
  if ('cookie' in source) return { cookie: `${source.cookie}=${credential}` }
  return { [source.header]: isAuthorization(source) ? `${scheme} ${credential}` : credential }
}
