/** A request of Node's server as a `Request`. */
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { LRUCache } from 'lru-cache'
import { Denied } from '../../errors.ts'
import { Fields, receivedFields } from './fields.ts'
import { bodyStream } from './request-body.ts'

/** A host and a port. Any other `Host` could move the end of the authority in a URL. */
const HOST = /^(?:[\w.~-]+|\[[\d.:a-f]+\])(?::\d{1,5})?$/i
/** A name of 253 characters, and a port. */
const MAX_HOST_CHARS = 259
/** Most requests have one of a few hosts, so each host is parsed once. */
const accepted = new LRUCache<string, true>({ max: 100 })
/** RFC 9112 section 3.2.2. */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/is
/** Requests of HTTP/1.0 may have no `Host`. */
const NO_HOST = 'localhost'

/** The part of `Request` that the pipeline uses. Creating a `Request` costs more than all stages. */
type PlainRequest = Pick<
  Request,
  'method' | 'url' | 'body' | 'bodyUsed' | 'signal' | 'text' | 'json' | 'arrayBuffer'
>

/**
 * A request whose headers, body and signal are created when they are read. The path and the query of
 * `url` are as they were sent, of which Node accepts visible ASCII only. Throws `Denied`
 * (`malformed_request`) for a `Host` or a target that would move the end of the authority, for a target
 * with another authority than `Host`, and for framing that other servers may read in another way.
 */
export class IncomingRequest implements PlainRequest {
  readonly method: string
  readonly url: string
  readonly #incoming: IncomingMessage
  #headers: Fields | undefined
  #body: ReadableStream<Uint8Array> | null | undefined
  #abort: AbortController | undefined
  #isGone = false

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming
    this.method = incoming.method ?? 'GET'
    if (incoming.httpVersion !== '1.1') requireFraming(incoming)
    this.url = createUrl(incoming, this.headers.get('host'))
  }

  get headers(): Fields {
    this.#headers ??= new Fields(receivedFields(this.#incoming.rawHeaders))
    return this.#headers
  }

  /** Null if the message has no body by its framing (RFC 9112 section 6.3), whatever its method is. */
  get body(): ReadableStream<Uint8Array> | null {
    this.#body ??= hasBody(this.#incoming) ? bodyStream(this.#incoming) : null
    return this.#body
  }

  get bodyUsed(): boolean {
    return this.#incoming.readableDidRead
  }

  /** Aborts when the client disconnects before the end of the response. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    if (this.#isGone) this.#abort.abort()
    return this.#abort.signal
  }

  /** The client has disconnected. */
  gone(): void {
    this.#isGone = true
    this.#abort?.abort()
  }

  text(): Promise<string> {
    return new Response(this.body).text()
  }

  json<Value>(): Promise<Value> {
    return new Response(this.body).json() as Promise<Value>
  }

  arrayBuffer(): Promise<ArrayBuffer> {
    return new Response(this.body).arrayBuffer()
  }
}

/**
 * The parser of Node also reads HTTP/0.9 and 2.0, and chunks in HTTP/1.0, which proxies in front may
 * frame in another way (RFC 9112 section 6.1).
 */
function requireFraming({ httpVersion, headers }: IncomingMessage): void {
  if (httpVersion !== '1.0' || headers['transfer-encoding'] !== undefined)
    throw new Denied({ code: 'malformed_request', check: 'framing' })
}

/** Whether a text is a host that `new URL()` reads: no port above 65535, no IPv4 address of five parts. */
function isHost(text: string): boolean {
  if (accepted.get(text)) return true
  if (text.length > MAX_HOST_CHARS || !HOST.test(text) || !URL.canParse(`http://${text}`))
    return false
  accepted.set(text, true)
  return true
}

/** `host` is a list if there are several fields, which is no valid host (RFC 9112 section 3.2). */
function createUrl({ url = '', socket }: IncomingMessage, host: string | null): string {
  if (host !== null && !isHost(host))
    throw new Denied({ code: 'malformed_request', check: 'target' })
  const absolute = url.startsWith('/') ? null : ABSOLUTE_FORM.exec(url)
  const authority = absolute?.[1] ?? host ?? NO_HOST
  const target = absolute === null ? url : (absolute[2] as string).replace(/^(?!\/)/, '/')
  // RFC 9112 section 3.2.2 ignores `Host` in the absolute form. A proxy in front may not.
  const isAmbiguous = absolute !== null && host?.toLowerCase() !== authority.toLowerCase()
  if (!isHost(authority) || isAmbiguous || !target.startsWith('/') || target.includes('#'))
    throw new Denied({ code: 'malformed_request', check: 'target' })
  const scheme = (socket as Partial<TLSSocket>).encrypted ? 'https' : 'http'
  return `${scheme}://${authority}${target}`
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
