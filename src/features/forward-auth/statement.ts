/** Reads which request a proxy asks about. */
import { Denied } from '../../errors.ts'
import { requestUrl } from '../../http/request-url.ts'
import type { Form } from './schema.ts'

/** The path of the endpoint. A proxy that states a path in the URL appends it. */
export const DECISION_PATH = '/-/decide'

const QUESTION = /^https?:\/\/([^/?#]*)\/-\/decide(\/.*|\?.*)?$/s
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

/** Describe the message of the proxy, or its body, and not the request that it asks about. */
// biome-ignore format: a table
const OF_QUESTION: ReadonlySet<string> = new Set([
  'host', 'connection', 'keep-alive', 'proxy-connection', 'upgrade', 'te', 'trailer', 'expect',
  'transfer-encoding', 'content-length', 'content-type', 'content-encoding',
  'x-forwarded-method', 'x-forwarded-uri', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port',
  'x-original-method', 'x-original-url', 'x-original-uri',
])

interface Stated {
  readonly method: string | null
  readonly target: string | null
  readonly host: string | null
  readonly scheme: string | null
}

/** The form of a statement, and the request that it describes. */
export interface Statement {
  readonly form: Form
  readonly request: DescribedRequest
}

/**
 * Returns the statement of a question. Undefined if the path is not that of the endpoint. Without
 * `expected`, the form follows from the question: a path below the endpoint, else the headers of the one
 * form that is there. Headers of both forms must agree, because the client may have sent either.
 *
 * Throws `Denied` (`malformed_request`) for a statement that is missing, incomplete, of another form than
 * the expected one, or no request.
 */
export function readStatement(question: Request, expected?: Form): Statement | undefined {
  const match = QUESTION.exec(question.url)
  if (match === null) return undefined
  const [, host = '', rest = ''] = match
  const { headers } = question
  if (rest.startsWith('/')) {
    const scheme = headers.get('x-forwarded-proto')
    const stated = { method: question.method, target: rest, host, scheme }
    return { form: matching('path', expected), request: describe(question, stated) }
  }
  const original = originalIn(headers, host)
  const forwarded = forwardedIn(headers, host)
  const form = expected ?? formOf(original, forwarded)
  if (form === 'path') throw unstated()
  const stated = form === 'original' ? original : forwarded
  if (stated === undefined) throw unstated()
  return { form, request: describe(question, stated) }
}

function originalIn(headers: Headers, host: string): Stated | undefined {
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

function forwardedIn(headers: Headers, host: string): Stated | undefined {
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

function formOf(original: Stated | undefined, forwarded: Stated | undefined): Form {
  if (forwarded === undefined) return 'original'
  if (original === undefined) return 'forwarded'
  if (original.method !== forwarded.method || original.target !== forwarded.target) throw unstated()
  if (original.host?.toLowerCase() !== forwarded.host?.toLowerCase()) throw unstated()
  return 'original'
}

function matching(form: Form, expected: Form | undefined): Form {
  if (expected !== undefined && expected !== form) throw unstated()
  return form
}

function describe(question: Request, { method, target, host, scheme }: Stated): DescribedRequest {
  if (method === null || target === null || host === null || !METHOD.test(method)) throw unstated()
  if (!TARGET.test(target)) throw unstated()
  const stated = scheme === null ? 'http' : SCHEMES.get(scheme.toLowerCase())
  if (stated === undefined) throw unstated()
  const headers = new Headers()
  for (const [name, value] of question.headers)
    if (!OF_QUESTION.has(name)) headers.append(name, value)
  headers.set('host', host)
  // A proxy removes `Upgrade`, which is of its hop. This one is sent only to open a WebSocket.
  if (headers.has('sec-websocket-key')) headers.set('upgrade', 'websocket')
  return new DescribedRequest(method, requestUrl(stated, host, target), headers, question.signal)
}

const unstated = () => new Denied({ code: 'malformed_request', check: 'forwarded_statement' })

/** A request that a proxy has received. Its path is as it was sent, and its body is not here. */
export class DescribedRequest
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
