/** The request of Connect as a `Request`, whose body is read only if a stage of the guard reads it. */
import type { NodeRequest } from './connect.ts'

const METHODS_WITHOUT_BODY = new Set(['GET', 'HEAD'])
/** A `Request` refuses them. */
const FORBIDDEN_METHODS = new Set(['CONNECT', 'TRACE', 'TRACK'])

/** For a request that has none, or an invalid one, which is refused. */
const NO_HOST = 'localhost'

/** Returns the request. Its `url` has the path as it was sent: `URL` would resolve its dots. */
export function requestOf(req: NodeRequest) {
  const headers = headersOf(req)
  const method = req.method ?? 'GET'
  const target = req.originalUrl ?? req.url ?? '/'
  const scheme = req.protocol ?? (req.socket?.encrypted ? 'https' : 'http')
  const url = `${scheme}://${headers.get('host') ?? NO_HOST}${target}`
  const isUrl = URL.canParse(url)
  const body = hasBody(req) && !METHODS_WITHOUT_BODY.has(method) ? bodyOf(req) : null
  // Required for a stream, and missing in the types of Workers.
  const init: RequestInit & { readonly duplex: 'half' } = { headers, body, duplex: 'half' }
  const request = new Request(isUrl ? url : `http://${NO_HOST}/`, {
    ...init,
    method: FORBIDDEN_METHODS.has(method) ? 'POST' : method,
  })
  Object.defineProperties(request, { url: { value: url }, method: { value: method } })
  return {
    request,
    /** Whether `Host` and the target form a URL. */
    isUrl,
  }
}

/** Several fields of one name are joined, as `Headers` does: Node would drop all but one of some. */
function headersOf({ rawHeaders, headers }: NodeRequest): Headers {
  const fields = new Headers()
  if (rawHeaders === undefined) {
    for (const [name, value] of Object.entries(headers))
      for (const each of [value ?? []].flat()) fields.append(name, each)
    return fields
  }
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    // HTTP/2 has the method and the target as fields.
    if (name.toLowerCase() === ':authority') fields.set('host', rawHeaders[at + 1] ?? '')
    else if (!name.startsWith(':')) fields.append(name, rawHeaders[at + 1] ?? '')
  }
  return fields
}

/**
 * Reports whether the request has a body (RFC 9112 section 6.3). In HTTP/2, a body needs neither field: a
 * request without one ends with its headers.
 */
export function hasBody({ headers, httpVersionMajor = 1, stream }: NodeRequest): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = headers
  if (length === undefined && httpVersionMajor >= 2) return stream?.endAfterHeaders !== true
  return coding !== undefined || (length !== undefined && length !== '0')
}

/** Reports whether something has read the body, and left no result. */
export const isBodyLost = (req: NodeRequest): boolean =>
  hasBody(req) && req.readableDidRead === true && req.body === undefined

/**
 * Returns the body. The stream of the request is read only if this one is: otherwise a body parser of the
 * app reads it. A body that a parser has read already is what it has parsed, as JSON.
 */
function bodyOf(req: NodeRequest): ReadableStream<Uint8Array> {
  let chunks: AsyncIterator<Uint8Array | string> | undefined
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (discarded.has(req)) return controller.close()
        if (chunks === undefined && req.readableDidRead === true) {
          const bytes = bytesOf(req.body)
          if (bytes.byteLength > 0) controller.enqueue(bytes)
          return controller.close()
        }
        chunks ??= req[Symbol.asyncIterator]?.()
        const chunk = await chunks?.next()
        if (chunk === undefined || chunk.done) controller.close()
        else controller.enqueue(bytesOf(chunk.value))
      },
    },
    { highWaterMark: 0 },
  )
}

const encoder = new TextEncoder()

function bytesOf(body: unknown): Uint8Array {
  if (body instanceof Uint8Array) return body
  return encoder.encode(typeof body === 'string' ? body : (JSON.stringify(body) ?? ''))
}

/** Requests with a body that was too large for what read it. */
const discarded = new WeakSet<object>()

/** Reports whether the announced body exceeds `maxBytes`. Then nothing reads it any more. */
export function isTooLong(req: NodeRequest, maxBytes: number): boolean {
  const isOver = Number(req.headers['content-length'] ?? 0) > maxBytes
  if (isOver) discarded.add(req)
  return isOver
}

/**
 * Calls `onExcess` when a body has more than `maxBytes()`, whatever reads it. The rest is discarded. Returns
 * whether what has arrived is within the limit. Node itself ends a body at its `Content-Length`, which the
 * guard has checked: such a body is limited only if the limit may fall (`mayFall`).
 */
export function limitUnread(req: NodeRequest, { maxBytes, mayFall, onExcess }: BodyLimit): boolean {
  const { push, read } = req
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers
  const announced = length !== undefined && coding === undefined ? Number(length) : undefined
  if (push === undefined || !hasBody(req) || (announced !== undefined && !mayFall)) return true
  let bytes = Math.max(announced ?? 0, req.readableLength ?? 0)
  const isOver = (): boolean => {
    if (discarded.has(req)) return true
    if (bytes <= maxBytes()) return false
    discarded.add(req)
    onExcess()
    return true
  }
  req.push = function limited(chunk, encoding) {
    if (announced === undefined) bytes += chunk?.length ?? 0
    return isOver() || push.call(req, chunk, encoding)
  }
  // What has arrived under a larger limit is in a buffer.
  if (mayFall && read !== undefined) req.read = (size) => (isOver() ? null : read.call(req, size))
  return !isOver()
}

interface BodyLimit {
  /** The limit of the route that the request is for now. */
  readonly maxBytes: () => number
  /** Whether the limit can become smaller than now, because an app can rewrite the URL. */
  readonly mayFall: boolean
  readonly onExcess: () => void
}

/** Reports whether the app has rewritten the URL, beyond what a mounted router removes from it. */
export function isRewritten({ originalUrl, baseUrl = '', url = '' }: NodeRequest): boolean {
  return originalUrl !== undefined && pathOf(originalUrl) !== pathOf(baseUrl + url)
}

/** Express adds a slash to the URL in a mounted router. */
function pathOf(url: string): string {
  const query = url.indexOf('?')
  let end = query === -1 ? url.length : query
  while (url[end - 1] === '/') end -= 1
  return url.slice(0, end)
}
