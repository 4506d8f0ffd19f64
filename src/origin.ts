/** The origin behind the gateway: where its requests go, how long they may take, how they fail. */
import { Denied, Misconfigured, Unavailable } from './errors.ts'

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

/** A request as it is to be sent. */
export interface OriginRequest {
  readonly method: string
  /** Path and query exactly as received, beginning with a slash. */
  readonly target: string
  readonly headers: Headers
  readonly body: ReadableStream<Uint8Array> | Uint8Array | null
  /** Milliseconds until the response's headers must be there, the upload included. */
  readonly timeoutMs: number
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal
}

/** Port: sends a request to the one origin this gateway fronts. */
export interface Origin {
  send(request: OriginRequest): Promise<Response>
}

/** The authority that a service binding sees where no URL names one. */
const BINDING_URL = 'https://origin'

/**
 * Makes the port to an origin. Whatever a request says, its authority is the configured one and
 * its path is below the configured base; redirects are given back, not followed; nothing is
 * retried, and nothing is read from or written to Cloudflare's cache, which knows no callers.
 *
 * `send` throws `Unavailable('origin', 'timeout')` when the headers are not there in time,
 * `Unavailable('origin', 'malformed')` for a status that HTTP does not have, and
 * `Unavailable('origin', 'unreachable')` for every other failure. The body of the answer streams
 * without a deadline. A client that goes away ends the request to the origin as well.
 *
 * Does NOT check the target: a path with dot segments could leave the base path, so
 * `canonicalPath()` must have run. Throws {@link Misconfigured} for a bad URL.
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
    async send({ method, target, headers, body, timeoutMs, signal }) {
      // Appended to a bare authority, anything else could change it: `.evil.test`, `@evil.test`.
      if (!target.startsWith('/'))
        throw new Denied({ code: 'path_ambiguous', check: 'not_absolute' })
      const abort = new AbortController()
      let late = false
      const deadline = setTimeout(() => {
        late = true
        abort.abort()
      }, timeoutMs)
      const leave = () => abort.abort()
      signal.addEventListener('abort', leave)
      try {
        if (signal.aborted) abort.abort()
        const init = {
          method,
          headers,
          body,
          redirect: 'manual',
          cache: 'no-store',
          signal: abort.signal,
          // Fetch demands it of a streamed body; workerd needs no telling.
          duplex: 'half',
        } satisfies RequestInit & { duplex: 'half' }
        const response = await (binding === undefined
          ? fetch(base + target, init)
          : binding.fetch(base + target, init))
        if (!isStatus(response.status)) throw new Unavailable('origin', 'malformed')
        return response
      } catch (cause) {
        if (cause instanceof Unavailable) throw cause
        if (late) throw new Unavailable('origin', 'timeout', { cause })
        // Nobody is left to read this; the audit trail must not blame the origin.
        if (signal.aborted) throw new Denied({ code: 'request_malformed', check: 'client_gone' })
        throw new Unavailable('origin', 'unreachable', { cause })
      } finally {
        clearTimeout(deadline)
        signal.removeEventListener('abort', leave)
      }
    },
  }
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
