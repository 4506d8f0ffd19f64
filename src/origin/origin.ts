/** Sends requests to the origin behind the gateway, with a timeout, and reports failures. */

import type { Principal } from '../access/principal.ts'
import { Denied, Misconfigured, malformed, Unavailable } from '../errors.ts'
import { targetOf } from '../http/path.ts'
import { fieldsOf } from '../http/shared-caches.ts'
import { readEarly, streamOf } from './early-body.ts'

/** Sends requests: a service binding, or any object with the same `fetch` method. */
export interface Fetches {
  fetch(url: string, init: RequestInit): Promise<Response>
}

export interface OriginOptions {
  /** Base URL. Requests go to its authority, below its path. Optional with a binding. */
  readonly url?: string | undefined
  /** A service binding to use instead of the network. */
  readonly binding?: Fetches | undefined
}

export interface OriginRequest {
  /** Provides the method, path, query and abort signal. */
  readonly incoming: Request
  /** Headers to send instead of the client's own, by lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  /** The client's body, possibly read or transformed. */
  readonly body: ReadableStream<Uint8Array> | Uint8Array | null
  /** Timeout for the response headers in milliseconds, including the upload. */
  readonly timeoutMs: number
  /** Method, host if the route has one, and pattern (`GET /orders/:id`): failures are counted by route. */
  readonly route?: string | undefined
  /** Path and query to send instead of those of `incoming`. */
  readonly target?: string | undefined
  /** Null for an anonymous caller. */
  readonly caller?: Principal | null
  /** The client's normalized address. */
  readonly address?: string
  /** Whether a short body may be read before `send` returns. Default false. */
  readonly readsEarly?: boolean
  /** Whether the caller itself refuses a header that is too large, as `proxy` does. Default false. */
  readonly boundsHeader?: boolean
}

/**
 * Port: sends a request to the origin. The headers of the response can be changed, and its body has
 * the origin's content encoding.
 */
export interface Origin {
  send(request: OriginRequest): Promise<Response>
}

/**
 * Maximum size of all names and values of the header fields of a response: the limit of Cloudflare. A
 * larger header is `too_large`.
 */
export const MAX_RESPONSE_HEADER_BYTES = 131_072

/** Throws `Unavailable` (`too_large`) for a response whose names and values of header fields have this length. */
export function refuseLarge(response: Response, length: number): void {
  if (length <= MAX_RESPONSE_HEADER_BYTES) return
  response.body?.cancel().catch(() => {})
  throw new Unavailable('origin', 'too_large')
}

/** Most origins respond within this time, and watching the client's abort signal costs CPU. */
export const UNWATCHED_MS = 50
/** How long a header waits for a short body, if the origin has taken longer. Most arrive together with it. */
const EARLY_MS = 20

/** The authority that a service binding receives if no URL is configured. */
const BINDING_URL = 'https://origin'

/**
 * Creates the port to an origin. Redirects are returned, not followed. The gateway does not retry
 * (the runtime repeats a GET, HEAD or DELETE if a kept-alive connection closes without a response).
 * Requests bypass Cloudflare's cache, which does not distinguish callers.
 *
 * `send` throws `Unavailable`: `timeout` if the headers do not arrive in time, `malformed` for a
 * status that does not exist in HTTP, `too_large`, and `unreachable` for any other failure. A `Denied` of the body is
 * thrown as it is, and any other failure of the body is a `Denied` (`malformed_request`). The response body streams without a timeout.
 *
 * Does NOT check the path: dot segments could leave the base path, so `canonicalPath()` must run
 * before. Throws {@link Misconfigured} for an invalid URL.
 *
 * @example
 * ```ts
 * const origin = createOrigin({ url: 'https://api.internal.example/v2' })
 * ```
 */
export function createOrigin({ url, binding }: OriginOptions): Origin {
  if (url === undefined && binding === undefined)
    throw new Misconfigured('The origin', ['needs a URL or a service binding'])
  const base = parseBase(url)

  return {
    async send(request) {
      const { incoming, headers, body, timeoutMs, readsEarly, boundsHeader } = request
      const target = targetBelow(request)
      const abort = new AbortController()
      let clientFailed = false
      // If a JavaScript stream fails, workerd ends the request normally, and the origin would treat the received part
      // as the whole body. Therefore the request is aborted first. The platform's own bodies do not need this.
      const failClient = (error: unknown) => {
        clientFailed = true
        abort.abort(error)
      }
      let watched: AbortSignal | undefined
      const leave = () => abort.abort(watched?.reason)
      const untilWatchedMs = Math.min(UNWATCHED_MS, timeoutMs)
      let onTimer = () => {
        timer = setTimeout(
          () => abort.abort(new Unavailable('origin', 'timeout')),
          timeoutMs - untilWatchedMs,
        )
        watched = incoming.signal
        watched.addEventListener('abort', leave)
        if (watched.aborted) leave()
      }
      let timer = setTimeout(() => onTimer(), untilWatchedMs)
      const init = {
        method: incoming.method,
        headers: toObject(headers),
        body:
          body instanceof ReadableStream && body !== incoming.body
            ? streamOf(body.getReader(), failClient)
            : body,
        redirect: 'manual',
        cache: 'no-store',
        encodeResponseBody: 'manual',
        signal: abort.signal,
        // The Fetch standard requires this for a body that streams.
        duplex: 'half',
      } satisfies RequestInit & { duplex: 'half' }
      try {
        const answer = await (binding === undefined
          ? fetch(base + target, init)
          : binding.fetch(base + target, init))
        if (!isStatus(answer.status)) throw new Unavailable('origin', 'malformed')
        if (!boundsHeader) refuseLarge(answer, fieldsOf(answer.headers).length)
        if (answer.status === 101) return answer
        // Not `c.body()`: that would lose the separate Set-Cookie fields and the body's encoding.
        if (!readsEarly) return new Response(answer.body, answer)
        return await readEarly(answer, binding === undefined, (late) => {
          // The timer that runs is the shorter one, and costs nothing more.
          if (watched === undefined) onTimer = late
          else {
            clearTimeout(timer)
            timer = setTimeout(late, EARLY_MS)
          }
        })
      } catch (cause) {
        const reason = abort.signal.aborted ? abort.signal.reason : cause
        if (reason instanceof Unavailable || reason instanceof Denied) throw reason
        // The client has disconnected. The audit trail must not blame the origin.
        if (incoming.signal.aborted) throw malformed('client_gone')
        // A body that cannot be read to its end, such as one with a broken chunk.
        if (clientFailed) throw malformed('body_incomplete')
        throw new Unavailable('origin', 'unreachable', { cause })
      } finally {
        clearTimeout(timer)
        watched?.removeEventListener('abort', leave)
      }
    },
  }
}

/**
 * Returns the path and the query for the origin, to append to the base URL. Throws `Denied`
 * (`ambiguous_path`) without a leading slash: `.evil.test` or `@evil.test` would change the authority.
 */
export function targetBelow({
  incoming,
  target = targetOf(incoming.url),
}: Pick<OriginRequest, 'incoming' | 'target'>): string {
  if (!target.startsWith('/')) throw new Denied({ code: 'ambiguous_path', check: 'not_absolute' })
  return target
}

/** The platform reads an object in one step. `Object.fromEntries` costs twice as much. */
function toObject(headers: ReadonlyMap<string, string>): Record<string, string> {
  const object: Record<string, string> = {}
  for (const [name, value] of headers) object[name] = value
  return object
}

/**
 * Returns scheme, authority and base path, without a trailing slash. Default: those that a service
 * binding receives. Throws `Misconfigured`.
 */
export function parseBase(text: string = BINDING_URL): string {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new Misconfigured('The origin', ['needs an http or https URL'])
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new Misconfigured('The origin', [
      'must not have credentials, a query or a fragment in its URL',
    ])
  return url.origin + url.pathname.replace(/\/+$/, '')
}

/** 101 is an accepted upgrade. Other informational statuses never reach this code. */
const isStatus = (status: number): boolean => status === 101 || (status >= 200 && status <= 599)
