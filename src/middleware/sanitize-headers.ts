/** Decides which of a client's headers an origin may see. */
import { createMiddleware } from 'hono/factory'
import type { ForwardHeadersVariables } from '../context.ts'
import { Denied } from '../errors.ts'
import { receivedHeaders } from '../request-headers.ts'

/** Cloudflare's limit on all request headers, bytes; `wrangler dev` takes more. */
export const MAX_HEADER_BYTES = 131_072
/** Far above what any client sends; each one costs the origin something. */
export const MAX_HEADERS = 500
/** Colon, space, CR and LF of a header line. */
const LINE_OVERHEAD_BYTES = 4

/** Lower-case names that never go on, each for the reason that heads its line. */
// biome-ignore format: a table
const DROPPED: ReadonlySet<string> = new Set([
  // Hop by hop (RFC 9110 section 7.6.1).
  'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings',
  // Set anew for the request to the origin.
  'host', 'content-length', 'expect', 'x-request-id', 'traceparent', 'tracestate',
  // Added back where a route asks for them; a proof of possession goes with its token.
  'authorization', 'dpop', 'cookie',
  // For the gateway alone.
  'x-consistency-token',
  // Another path, method or host than the one that was decided on.
  'x-rewrite-url', 'x-rewrite-uri', 'x-method-override', 'x-host', 'x-script-name', 'x-proxy-url',
  'x-sendfile-type', 'base-url', 'request-uri',
  // Claims about where the request came from.
  'forwarded', 'client-ip', 'true-client-ip', 'x-real-ip', 'x-client-ip', 'x-cluster-client-ip',
  'x-remote-ip', 'x-remote-addr', 'x-originating-ip', 'x-envoy-external-address',
  'fastly-client-ip', 'x-appengine-user-ip', 'x-azure-clientip',
  // Claims about who sent it, in the words of other gateways.
  'remote-user', 'x-webauth-user', 'x-auth', 'x-authorization', 'x-client-cert', 'x-method',
  'x-scheme', 'proxy',
  // A response header that no request has.
  'set-cookie',
])

/**
 * Families of the same kinds, and any name with a character besides letters, digits and hyphens:
 * CGI and WSGI servers read `X_Auth_Subject`, and some `X.Auth.Subject`, as `X-Auth-Subject`.
 */
const DROPPED_FAMILY =
  /[^a-z0-9-]|^(?:x-auth(?:enticated)?-|x-forwarded|x-original-|x-http-method|x-accel-|proxy-|cf-|x-authenticated|x-user|x-remote-user|x-consumer-|x-ms-client-|x-goog-|x-amzn-|x-pomerium-|x-ssl-|ssl-|x-envoy-)/

/**
 * Sets `forwardHeaders`: a copy of the request's headers without those that only the gateway may
 * write (`X-Auth-*`, `X-Request-Id`, trace context), those of the hop (also the ones that
 * `Connection` names), those that claim another path, method, host or client address, `Cookie`,
 * `Authorization` and `DPoP`, and every name that is not plain letters, digits and hyphens. The request
 * itself is left as it is.
 *
 * Throws `Denied` (`request_malformed`) above {@link MAX_HEADERS} or {@link MAX_HEADER_BYTES}.
 * Does NOT look at values, and adds nothing: that is for the stage that sends the request on.
 *
 * @example
 * ```ts
 * app.use(sanitizeHeaders())
 * app.all('*', (c) => fetch(ORIGIN, { headers: Object.fromEntries(forwardHeadersOf(c)) }))
 * ```
 */
export const sanitizeHeaders = () =>
  createMiddleware<{ Variables: ForwardHeadersVariables }>(function sanitizeHeaders(c, next) {
    const received = receivedHeaders(c)
    const forward = new Map<string, string>()
    let bytes = 0
    for (const [name, value] of received) {
      bytes += name.length + value.length + LINE_OVERHEAD_BYTES
      if (!DROPPED.has(name) && !DROPPED_FAMILY.test(name)) forward.set(name, value)
    }
    if (received.size > MAX_HEADERS)
      throw new Denied({ code: 'request_malformed', check: 'header_count' })
    if (bytes > MAX_HEADER_BYTES)
      throw new Denied({ code: 'request_malformed', check: 'header_bytes' })
    deleteNamedIn(received.get('connection'), forward)
    c.set('forwardHeaders', forward)
    return next()
  })

/** RFC 9110 section 7.6.1: what `Connection` names belongs to this hop, too. */
export function deleteNamedIn(
  connection: string | undefined,
  headers: { delete(name: string): unknown },
): void {
  if (connection === undefined) return
  for (const option of connection.split(',')) {
    const name = option.trim()
    if (TOKEN.test(name)) headers.delete(name.toLowerCase())
  }
}

/** RFC 9110 section 5.6.2; `Headers` throws for anything else. */
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
