/** The origin behind the gateway: where its requests go, how long they may take, how they fail. */
import { Denied, Misconfigured, Unavailable } from './errors.ts'
import type { WaitUntil } from './tokens/principal.ts'
import { targetOf } from './validators/path.ts'

/** What carries requests: a service binding, or anything else with a `fetch` like it. */
export interface Fetches {
  fetch(url: string, init: RequestInit): Promise<Response>
}

export interface OriginOptions {
  /** Base URL; requests go to its authority, below its path. Optional beside a binding. */
  readonly url?: string | undefined
  /** A service binding to use instead of the network. */
  readonly binding?: Fetches | undefined
}

/** What is to be sent, and for whom. */
export interface OriginRequest {
  /** The client's request: its method, path, query, and the signal that it has gone. */
  readonly incoming: Request
  /** Instead of the client's own headers, by lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  /** The client's body as it is, or what has become of it. */
  readonly body: ReadableStream<Uint8Array> | Uint8Array | null
  /** Milliseconds until the response's headers must be there, the upload included. */
  readonly timeoutMs: number
  /** Method and pattern of the route (`GET /orders/:id`), by which failures are told apart. */
  readonly route?: string | undefined
  /** For work on the answer that outlives the client. */
  readonly waitUntil?: WaitUntil | undefined
  /** For who has waited since a moment before the origin is asked: throws if it must not be any more. */
  readonly stillAdmitted?: ((sinceMs: number) => Promise<void>) | undefined
}

/**
 * Port: sends a request to the one origin this gateway fronts. The answer's body, where it is read,
 * is encoded as the origin encoded it.
 */
export interface Origin {
  send(request: OriginRequest): Promise<Response>
}

/** Most origins have answered by then, and to look whether a client is still there costs CPU. */
const UNWATCHED_MS = 50

/** The authority that a service binding sees where no URL names one. */
const BINDING_URL = 'https://origin'

/**
 * Makes the port to an origin. Whatever a request says, its authority is the configured one and
 * its path is below the configured base; redirects are given back, not followed; nothing is
 * retried by the gateway (the runtime repeats a GET, HEAD or DELETE that a kept-alive connection
 * dropped unanswered), and nothing is read from or written to Cloudflare's cache, which knows no callers.
 *
 * `send` throws `Unavailable('origin', 'timeout')` when the headers are not there in time,
 * `'malformed'` for a status that HTTP does not have, and `'unreachable'` for any other failure;
 * but the `Denied` of a body that refuses to be read further is thrown as it is. The body of the
 * answer streams without a deadline. A client that goes away ends the request to the origin, some
 * 50 ms later at most.
 *
 * Does NOT check the path: dot segments could leave the base path, so `canonicalPath()` must have
 * run. Throws {@link Misconfigured} for a bad URL.
 *
 * @example
 * ```ts
 * const origin = createOrigin({ url: 'https://api.internal.example/v2' })
 * ```
 */
export function createOrigin({ url, binding }: OriginOptions): Origin {
  if (url === undefined && binding === undefined)
    throw new Misconfigured('The origin', ['needs a URL or a service binding'])
  const base = baseOf(url ?? BINDING_URL)

  return {
    async send({ incoming, headers, body, timeoutMs }) {
      const target = targetOf(incoming.url)
      // Behind a bare authority, anything else could change it: `.evil.test`, `@evil.test`.
      if (!target.startsWith('/'))
        throw new Denied({ code: 'path_ambiguous', check: 'not_absolute' })
      const abort = new AbortController()
      let watched: AbortSignal | undefined
      const leave = () => abort.abort(watched?.reason)
      const expire = () => abort.abort(new Unavailable('origin', 'timeout'))
      const untilWatchedMs = Math.min(UNWATCHED_MS, timeoutMs)
      let timer = setTimeout(() => {
        timer = setTimeout(expire, timeoutMs - untilWatchedMs)
        watched = incoming.signal
        watched.addEventListener('abort', leave)
        if (watched.aborted) leave()
      }, untilWatchedMs)
      const init = {
        method: incoming.method,
        // Turned into the platform's own once, by `fetch`.
        headers: objectOf(headers),
        body: body instanceof ReadableStream && body !== incoming.body ? whole(body, abort) : body,
        redirect: 'manual',
        cache: 'no-store',
        encodeResponseBody: 'manual',
        signal: abort.signal,
        // The Fetch standard wants this said of a body that streams.
        duplex: 'half',
      } satisfies RequestInit & { duplex: 'half' }
      try {
        const answer = await (binding === undefined
          ? fetch(base + target, init)
          : binding.fetch(base + target, init))
        if (!isStatus(answer.status)) throw new Unavailable('origin', 'malformed')
        return answer
      } catch (cause) {
        const reason = abort.signal.aborted ? abort.signal.reason : cause
        if (reason instanceof Unavailable || reason instanceof Denied) throw reason
        // Nobody is left to read this; the audit trail must not blame the origin.
        if (incoming.signal.aborted)
          throw new Denied({ code: 'request_malformed', check: 'client_gone' })
        throw new Unavailable('origin', 'unreachable', { cause })
      } finally {
        clearTimeout(timer)
        watched?.removeEventListener('abort', leave)
      }
    },
  }
}

/** The platform takes an object in one go. `Object.fromEntries` costs twice as much. */
function objectOf(headers: ReadonlyMap<string, string>): Record<string, string> {
  const object: Record<string, string> = {}
  for (const [name, value] of headers) object[name] = value
  return object
}

/**
 * Gives on a body that the origin gets to its end or not at all. workerd closes the request
 * properly where a stream made in JavaScript fails, and the origin would take the part that it
 * got for the whole; so the request is aborted before the failure is passed on. A body of the
 * platform's own does not need this, and is faster without it.
 */
function whole(body: ReadableStream<Uint8Array>, abort: AbortController): ReadableStream {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          abort.abort(error)
          controller.error(error)
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/** Scheme, authority and base path, without a trailing slash. */
function baseOf(text: string): string {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new Misconfigured('The origin', ['needs an http or https URL'])
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new Misconfigured('The origin', ['takes no credentials, query or fragment in its URL'])
  return url.origin + url.pathname.replace(/\/+$/, '')
}

/** 101 is an accepted upgrade; other informational statuses never get here. */
const isStatus = (status: number): boolean => status === 101 || (status >= 200 && status <= 599)
