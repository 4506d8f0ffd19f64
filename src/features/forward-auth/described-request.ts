/** Reads which request the authorization request of a proxy describes. */
import { Denied } from '../../errors.ts'
import { requestUrl } from '../../http/request-url.ts'
import type { Form } from './schema.ts'

/** The endpoint is `/-/decide`. A proxy that describes a path in the URL appends it. */
const ENDPOINT = /^https?:\/\/([^/?#]*)\/-\/decide(\/.*|\?.*)?$/s
/** RFC 9110 section 9.1. */
const METHOD = /^[A-Z][A-Z-]{0,31}$/
/** The origin form of a target. Everything else in a header is no target that a proxy has received. */
const TARGET = /^\/[!-~]*$/
const ORIGINAL_URL = /^(?:(https?):\/\/([^/?#]*))?(\/.*)$/is
const SCHEMES: ReadonlyMap<string, 'http' | 'https'> = new Map([
  ['http', 'http'],
  ['https', 'https'],
  ['ws', 'http'],
  ['wss', 'https'],
])

/** Describe the message of the proxy, or its body, and not the request of its client. */
// biome-ignore format: a table
const OF_AUTHORIZATION_REQUEST: ReadonlySet<string> = new Set([
  'host', 'connection', 'keep-alive', 'proxy-connection', 'upgrade', 'te', 'trailer', 'expect',
  'transfer-encoding', 'content-length', 'content-type', 'content-encoding',
  'x-forwarded-method', 'x-forwarded-uri', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port',
  'x-original-method', 'x-original-url', 'x-original-uri',
])

interface Description {
  readonly method: string | null
  readonly target: string | null
  readonly host: string | null
  readonly scheme: string | null
}

/** The described request, and the form in which the proxy describes it. */
export interface Described {
  readonly form: Form
  readonly request: DescribedRequest
}

/**
 * Returns the request that an authorization request describes. Undefined if the path is not that of the
 * endpoint. Without `expected`, the form follows from the authorization request: a path below the endpoint,
 * else the headers of the one form that is there. Headers of both forms must agree, because the client may
 * have sent either.
 *
 * Throws `Denied` (`malformed_request`) for a description that is missing, incomplete, of another form than
 * the expected one, or no request.
 */
export function readDescribed(
  authorizationRequest: Request,
  expected?: Form,
): Described | undefined {
  const match = ENDPOINT.exec(authorizationRequest.url)
  if (match === null) return undefined
  const [, host = '', rest = ''] = match
  const { headers } = authorizationRequest
  if (rest.startsWith('/')) {
    const scheme = headers.get('x-forwarded-proto')
    const description = { method: authorizationRequest.method, target: rest, host, scheme }
    return {
      form: matching('path', expected),
      request: describe(authorizationRequest, description),
    }
  }
  const original = originalIn(headers, host)
  const forwarded = forwardedIn(headers, host)
  const form = expected ?? formOf(original, forwarded)
  if (form === 'path') throw malformed()
  const description = form === 'original' ? original : forwarded
  if (description === undefined) throw malformed()
  return { form, request: describe(authorizationRequest, description) }
}

function originalIn(headers: Headers, host: string): Description | undefined {
  const url = headers.get('x-original-url')
  const method = headers.get('x-original-method')
  if (url === null && method === null) return undefined
  const [, scheme, authority, target] = ORIGINAL_URL.exec(url ?? '') ?? []
  return {
    method,
    target: target ?? null,
    host: authority ?? host,
    scheme: scheme ?? headers.get('x-forwarded-proto'),
  }
}

function forwardedIn(headers: Headers, host: string): Description | undefined {
  const target = headers.get('x-forwarded-uri')
  const method = headers.get('x-forwarded-method')
  if (target === null && method === null) return undefined
  return {
    method,
    target,
    host: headers.get('x-forwarded-host') ?? host,
    scheme: headers.get('x-forwarded-proto'),
  }
}

function formOf(original: Description | undefined, forwarded: Description | undefined): Form {
  if (forwarded === undefined) return 'original'
  if (original === undefined) return 'forwarded'
  if (original.method !== forwarded.method || original.target !== forwarded.target)
    throw malformed()
  if (original.host?.toLowerCase() !== forwarded.host?.toLowerCase()) throw malformed()
  return 'original'
}

function matching(form: Form, expected: Form | undefined): Form {
  if (expected !== undefined && expected !== form) throw malformed()
  return form
}

function describe(
  authorizationRequest: Request,
  { method, target, host, scheme }: Description,
): DescribedRequest {
  if (method === null || target === null || host === null || !METHOD.test(method)) throw malformed()
  if (!TARGET.test(target)) throw malformed()
  const description = scheme === null ? 'http' : SCHEMES.get(scheme.toLowerCase())
  if (description === undefined) throw malformed()
  const headers = new Headers()
  for (const [name, value] of authorizationRequest.headers)
    if (!OF_AUTHORIZATION_REQUEST.has(name)) headers.append(name, value)
  headers.set('host', host)
  // A proxy removes `Upgrade`, which is of its hop. This one is sent only to open a WebSocket.
  if (headers.has('sec-websocket-key')) headers.set('upgrade', 'websocket')
  return new DescribedRequest(
    method,
    requestUrl(description, host, target),
    headers,
    authorizationRequest.signal,
  )
}

const malformed = () => new Denied({ code: 'malformed_request', check: 'forwarded_request' })

/** A request that a proxy has received. Its path is as it was sent, and its body is not here. */
class DescribedRequest
  implements Pick<Request, 'method' | 'url' | 'headers' | 'body' | 'bodyUsed' | 'signal' | 'text'>
{
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly signal: AbortSignal
  readonly body = null
  readonly bodyUsed = false

  constructor(method: string, url: string, headers: Headers, signal: AbortSignal) {
    this.method = method
    this.url = url
    this.headers = headers
    this.signal = signal
  }

  async text(): Promise<string> {
    return ''
  }
}
