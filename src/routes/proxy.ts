/** Sends an admitted request on to the origin, and its answer back. */
import type { Context } from 'hono'
import { UNKNOWN_ADDRESS } from '../admission/address-list.ts'
import { ADMITTED_FOR_MS } from '../admission/admission.ts'
import {
  bodyOf,
  callerOf,
  clientAddressOf,
  forwardHeadersOf,
  type GatewayVariables,
  requestIdOf,
  traceOf,
} from '../context.ts'
import type { Readmission } from '../middleware/readmit.ts'
import { waitUntilOf } from '../middleware/wait-until.ts'
import type { Origin } from '../origin.ts'
import { DEFAULT_ORIGIN_TIMEOUT_MS } from '../policy.ts'
import { receivedHeaders } from '../request-headers.ts'
import type { AssertionSigner } from '../tokens/assertion.ts'
import { setIdentity } from './identity-headers.ts'
import { fieldsOf, makePrivate, sanitizeResponse } from './origin-response.ts'
import { acceptUpgrade, isUpgrade, refuseBadUpgrade } from './web-socket.ts'

export interface ProxyOptions {
  readonly origin: Origin
  /** The route's own, such as `GET` and `/orders/:id`: failures of others are then not its own. */
  readonly method?: string
  readonly path?: string
  /** Signs `X-Auth-Assertion`. Without it the origin has to trust the other headers. */
  readonly assertions?: AssertionSigner | undefined
  /** How long the origin may take to send its headers, milliseconds. Default 15,000. */
  readonly originTimeoutMs?: number
  /** Forwards the caller's `Authorization`, and its `DPoP` proof. Default false. */
  readonly forwardAuthorization?: boolean
  /** Forwards the caller's `Cookie`. Default false. */
  readonly forwardCookies?: boolean
  /** Origins (`https://app.test`) whose pages may open a WebSocket. Default none. */
  readonly webSocketOrigins?: readonly string[]
  /**
   * Lets others have an answer whose client has left: for an `origin` that coalesces. Default false.
   */
  readonly coalesce?: boolean
  /** From `createReadmission`: where `origin` lets requests wait for others. Default nobody is asked. */
  readonly readmission?: Readmission | undefined
}

const DONE = Promise.resolve()
const isRecent = (ms: number) => Date.now() - ms <= ADMITTED_FOR_MS

/**
 * Makes the handler at the end of the pipeline. The origin gets the method, the path and query as
 * they were sent, the sanitized headers, the admitted body as a stream, and, written by the
 * gateway alone: `X-Request-Id`, `traceparent`, `tracestate`, `X-Forwarded-For` (the one address
 * that Cloudflare saw), `X-Forwarded-Proto`, and for a known caller `X-Auth-*` (see
 * {@link setIdentity}). `X-Forwarded-Host` is not sent: a client chooses it. `Authorization`
 * (with `DPoP`) and `Cookie` go on only on routes that ask for them.
 *
 * The client gets the origin's status, body and headers without those of {@link sanitizeResponse};
 * redirects are its own to follow. An answer to a known caller is made private to that caller.
 * Bodies stream, encoded as the origin encoded them; one that breaks off breaks off.
 *
 * Throws what the origin's `send` throws, and `Denied` (`request_malformed`) for a WebSocket
 * upgrade that is malformed or comes from a page of an origin that the route does not list.
 *
 * @example
 * ```ts
 * app.use(requestId(), canonicalPath(), sanitizeHeaders(), clientAddress())
 * app.use(limitBody({ maxBytes: 1_048_576 }), authenticate({ verifier }))
 * app.all('*', proxy({ origin: createOrigin({ url: 'https://api.internal.example' }) }))
 * ```
 */
export const proxy = ({
  origin,
  assertions,
  originTimeoutMs: timeoutMs = DEFAULT_ORIGIN_TIMEOUT_MS,
  webSocketOrigins = [],
  coalesce = false,
  readmission,
  method = '',
  path,
  ...forwarding
}: ProxyOptions) => {
  const route = path === undefined ? undefined : `${method} ${path}`
  return async function proxy(c: Context<{ Variables: GatewayVariables }>): Promise<Response> {
    const request = c.req.raw
    const upgrade = isUpgrade(receivedHeaders(c))
    const caller = callerOf(c)
    if (upgrade) refuseBadUpgrade(request, webSocketOrigins, caller)
    const headers = forwardHeadersOf(c)
    setProvenance(c, headers, forwarding)
    if (upgrade) headers.set('upgrade', 'websocket')
    if (caller !== null) {
      setIdentity(headers, caller)
      if (assertions !== undefined) headers.set('x-auth-assertion', await assertions.sign(caller))
    }
    const answer = await origin.send({
      incoming: request,
      headers,
      body: bodyOf(c),
      timeoutMs,
      route,
      waitUntil: coalesce ? waitUntilOf(c) : undefined,
      stillAdmitted:
        readmission && ((sinceMs) => (isRecent(sinceMs) ? DONE : readmission(c, sinceMs))),
    })
    if (answer.status === 101) return acceptUpgrade(answer, caller, Date.now())
    // Not `c.body()`: that would lose the separate Set-Cookie fields and the body's encoding.
    const response = new Response(answer.body, answer)
    const fields = fieldsOf(response.headers)
    sanitizeResponse(fields)
    if (caller !== null) makePrivate(fields)
    return response
  }
}

function setProvenance(
  c: Context<{ Variables: GatewayVariables }>,
  headers: Map<string, string>,
  { forwardAuthorization, forwardCookies }: Omit<ProxyOptions, 'origin'>,
): void {
  const received = receivedHeaders(c)
  const trace = traceOf(c)
  headers.set('x-request-id', requestIdOf(c))
  headers.set('traceparent', trace.traceparent)
  if (trace.tracestate !== undefined) headers.set('tracestate', trace.tracestate)
  headers.set('x-forwarded-proto', c.req.raw.url.startsWith('https:') ? 'https' : 'http')
  if (clientAddressOf(c) !== UNKNOWN_ADDRESS) copy('cf-connecting-ip', 'x-forwarded-for')
  if (forwardAuthorization) {
    copy('authorization')
    copy('dpop')
  }
  // Fields that the platform has joined are one list of cookies (RFC 6265 section 5.4).
  const cookies = forwardCookies ? received.get('cookie') : undefined
  if (cookies !== undefined) headers.set('cookie', cookies.replace(/,\s*/g, '; '))

  function copy(name: string, as = name): void {
    const value = received.get(name)
    if (value !== undefined) headers.set(as, value)
  }
}
