/** A request of Node's server as a `Request`. */
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { Denied } from '../../errors.ts'
import { requestUrl } from '../../http/request-url.ts'
import { Fields, receivedFields } from './fields.ts'
import { bodyStream } from './request-body.ts'

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
 * (`malformed_request`) without a `Host`, for one or a target that would move the end of the authority, for a target
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
    if (!isPlainlyFramed(incoming))
      throw new Denied({ code: 'malformed_request', check: 'framing' })
    const host = this.headers.get('host')
    // RFC 9112 section 3.2.
    if (host === null && incoming.httpVersion === '1.1')
      throw new Denied({ code: 'malformed_request', check: 'target' })
    this.url = createUrl(incoming, host)
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
 * frame in another way (RFC 9112 section 6.1). It ignores codings in front of `chunked`: the body would
 * reach the origin coded, and without the name of its coding.
 */
function isPlainlyFramed({ httpVersion, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']
  if (coding === undefined) return httpVersion === '1.1' || httpVersion === '1.0'
  return httpVersion === '1.1' && coding.toLowerCase() === 'chunked'
}

/** `host` is a list if there are several fields, which is no valid host (RFC 9112 section 3.2). */
function createUrl({ url = '', socket }: IncomingMessage, host: string | null): string {
  const scheme = (socket as Partial<TLSSocket>).encrypted ? 'https' : 'http'
  const absolute = url.startsWith('/') ? null : ABSOLUTE_FORM.exec(url)
  if (absolute === null) return requestUrl(scheme, host ?? NO_HOST, url)
  const [, authority = '', target = ''] = absolute
  // RFC 9112 section 3.2.2 ignores `Host` in the absolute form. A proxy in front may not.
  if (host?.toLowerCase() !== authority.toLowerCase())
    throw new Denied({ code: 'malformed_request', check: 'target' })
  return requestUrl(scheme, authority, target.replace(/^(?!\/)/, '/'))
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
