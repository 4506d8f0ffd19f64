/** Forwards an admitted request to the origin, and returns its response. */
import type { Context } from 'hono'
import { isHeldUp } from '../access/admission/admission.ts'
import type { AssertionSigner } from '../access/tokens/assertion.ts'
import { schemeOf } from '../access/tokens/credential.ts'
import { withoutCookies } from '../access/tokens/token-cookie.ts'
import { UNKNOWN_ADDRESS } from '../http/address-list.ts'
import { originOfRequest, type PublicOrigin } from '../http/public-origin.ts'
import { fieldsOf, makePrivate, varyBy } from '../http/shared-caches.ts'
import { type ClientAddressOptions, connectingAddress } from '../middleware/client-address.ts'
import {
  bodyOf,
  callerOf,
  clientAddressOf,
  forwardHeadersOf,
  type GatewayVariables,
  requestIdOf,
  traceOf,
  waitUntilOf,
} from '../middleware/context.ts'
import {
  createStreamWatch,
  isSafe,
  type StreamWatch,
  watchAnswer,
} from '../middleware/open-stream.ts'
import type { Readmission } from '../middleware/readmit.ts'
import { receivedHeaders } from '../middleware/request-headers.ts'
import type { CoalescedOrigin, SharingOptions } from '../origin/coalesced-origin.ts'
import { isRead } from '../origin/early-body.ts'
import { setIdentity } from '../origin/identity-headers.ts'
import { type OriginRequest, refuseLarge } from '../origin/origin.ts'
import { type Locate, publishLocations } from '../origin/public-location.ts'
import { DEFAULT_ORIGIN_TIMEOUT_MS } from '../policy/defaults.ts'
import { createOpenStreams } from '../streams/open-streams.ts'
import type { StreamRuntime } from '../streams/stream-runtime.ts'
import { watchedResponse } from '../streams/watched-response.ts'
import { sanitizeResponse } from './origin-response.ts'
import { acceptUpgrade, isUpgrade, refuseBadUpgrade, type Upgrades } from './web-socket.ts'

export interface ProxyOptions {
  readonly origin: CoalescedOrigin
  /** Method and path pattern of the route, which may begin with a host, separate its failures from those of other routes. */
  readonly method?: string
  readonly path?: string
  /** Returns the name of the origin for a caller, for the audit event. Default: that of the route. */
  readonly originOf?: ((request: Pick<OriginRequest, 'caller' | 'address'>) => string) | undefined
  /** Signs `X-Auth-Assertion`. Without it the origin must trust the other headers. */
  readonly assertions?: AssertionSigner | undefined
  /** How long the origin may take to send its headers, in milliseconds. Default 15,000. */
  readonly originTimeoutMs?: number
  /**
   * Forwards the caller's `Authorization`, and its `DPoP` proof; or only that of some schemes, of which
   * `leaveAuthorization` keeps those that the gateway does not verify. Default false.
   */
  readonly forwardAuthorization?: boolean | readonly string[]
  /** Forwards the caller's `Cookie`. Default false. */
  readonly forwardCookies?: boolean
  /** Names of cookies with tokens, which are never forwarded. Default none. */
  readonly tokenCookies?: readonly string[] | undefined
  /** Origins (`https://app.test`) with pages that may open a WebSocket. Default none. */
  readonly webSocketOrigins?: readonly string[]
  /** How the runtime upgrades a request to a WebSocket. Default: as workerd does. */
  readonly upgrades?: Upgrades | undefined
  /** Whether identical requests share one call to `origin`. Default false. */
  readonly coalesce?: boolean
  /** Admits requests again that have waited for another one. Default: they are not. */
  readonly readmission?: Readmission | undefined
  /** Returns the origin under which the client reached the gateway. Default: that of the request's URL. */
  readonly publicOriginOf?: (c: Context) => PublicOrigin
  /** Returns the public URL for a URL of the origin in `Location` and the like. Default: it stays. */
  readonly locate?: Locate | undefined
  /**
   * Returns the stream of an authenticated caller's request. Default: responses and WebSockets end when
   * the token expires, and a revocation does not end them.
   */
  readonly watchStream?: StreamWatch | undefined
  /** How the runtime watches a response. Default: as on Workers. */
  readonly watchResponse?: StreamRuntime['watch'] | undefined
  /** Returns the client's address, sent as `X-Forwarded-For`. Default: `CF-Connecting-IP`. */
  readonly addressOf?: ClientAddressOptions['addressOf']
}

/** Request headers that identify callers, unless the configuration names other sources. */
const CALLER_HEADERS = ['Authorization']

/**
 * Creates the handler at the end of the pipeline. The origin gets the method, the path and query as
 * they were sent, the sanitized headers, and the admitted body as a stream. Only the gateway writes
 * these headers: `X-Request-Id`, `traceparent`, `tracestate`, `X-Forwarded-For` (the one address
 * that the platform saw), `X-Forwarded-Proto`, `X-Forwarded-Host`, `X-Forwarded-Port` (see
 * `publicOrigins`), and `X-Auth-*` for an authenticated caller. The client chooses
 * the value of `X-Forwarded-Host`, unless the route has a `host`.
 *
 * The client gets the origin's status, body and headers without those that {@link sanitizeResponse}
 * removes. Redirects are returned, not followed. With `locate`, a URL of the origin is replaced by the
 * public URL. A response to an authenticated caller is private, and every response varies by
 * `Authorization`. An incomplete body stays incomplete.
 *
 * Throws what the origin's `send` throws, and `Denied` (`malformed_request`) for a bad upgrade.
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
  originOf,
  assertions,
  originTimeoutMs: timeoutMs = DEFAULT_ORIGIN_TIMEOUT_MS,
  webSocketOrigins = [],
  upgrades = { accept: acceptUpgrade },
  coalesce = false,
  readmission,
  watchStream = endingAtExpiry(),
  watchResponse = watchedResponse,
  method = '',
  path,
  publicOriginOf = originOfRequest(),
  locate,
  ...forwarding
}: ProxyOptions) => {
  const route = path === undefined ? undefined : `${method} ${path}`
  return async function proxy(c: Context<{ Variables: GatewayVariables }>): Promise<Response> {
    const request = c.req.raw
    const upgrade = isUpgrade(receivedHeaders(c)) && upgrades.isPossible?.(c) !== false
    const caller = callerOf(c, 'proxy')
    if (upgrade) refuseBadUpgrade(request, webSocketOrigins, caller)
    const headers = forwardHeadersOf(c, 'proxy')
    const publicOrigin = publicOriginOf(c)
    setProvenance(c, headers, publicOrigin, forwarding)
    if (upgrade) headers.set('upgrade', 'websocket')
    if (caller !== null) {
      setIdentity(headers, caller)
      if (assertions !== undefined) headers.set('x-auth-assertion', await assertions.sign(caller))
    }
    const address = clientAddressOf(c, 'proxy')
    if (originOf !== undefined) c.set('portcullis.origin', originOf({ caller, address }))
    const stream = watchStream(c)
    const sending = origin.send(
      {
        incoming: request,
        headers,
        body: bodyOf(c, 'proxy'),
        timeoutMs,
        route,
        caller,
        address,
        boundsHeader: true,
        // A shared response is divided first.
        readsEarly: stream !== undefined && !coalesce && request.method !== 'HEAD',
      },
      coalesce ? createSharing(c, readmission) : undefined,
    )
    // A request with effects was executed when its answer comes.
    const received = await (stream === undefined || upgrade || !isSafe(request.method)
      ? sending
      : stream.during(sending, timeoutMs, cancelBody))
    const fields = fieldsOf(received.headers)
    refuseLarge(received, fields.length)
    if (received.status === 101) return upgrades.accept(received, stream)
    const response =
      stream === undefined || isRead(received)
        ? received
        : watchAnswer(received, stream, request.method, watchResponse)
    fields.headers = response.headers
    sanitizeResponse(fields, response.status)
    if (locate !== undefined) publishLocations(fields, locate, publicOrigin)
    if (caller !== null) makePrivate(fields)
    varyBy(fields, CALLER_HEADERS)
    return response
  }
}

function endingAtExpiry(): StreamWatch {
  const streams = createOpenStreams({ recheck: async () => [], now: () => Date.now() })
  return createStreamWatch({
    streams,
    terms: { recheckMs: 0, graceMs: 0, finishes: false },
    ended() {},
  })
}

/** Of a response that came after its stream was ended. */
function cancelBody({ body }: Response): void {
  body?.cancel().catch(() => {})
}

/** A request that waits for another one is admitted again if that took long. */
function createSharing(c: Context, readmission: Readmission | undefined): SharingOptions {
  return {
    waitUntil: waitUntilOf(c),
    async beforeCall(sinceMs) {
      if (isHeldUp(sinceMs)) await readmission?.(c, sinceMs)
    },
  }
}

function setProvenance(
  c: Context<{ Variables: GatewayVariables }>,
  headers: Map<string, string>,
  { scheme, host, port }: PublicOrigin,
  {
    forwardAuthorization,
    forwardCookies,
    tokenCookies = [],
    addressOf = connectingAddress,
  }: Omit<ProxyOptions, 'origin'>,
): void {
  const received = receivedHeaders(c)
  const trace = traceOf(c)
  headers.set('x-request-id', requestIdOf(c))
  headers.set('traceparent', trace.traceparent)
  if (trace.tracestate !== undefined) headers.set('tracestate', trace.tracestate)
  headers.set('x-forwarded-proto', scheme)
  headers.set('x-forwarded-host', host)
  headers.set('x-forwarded-port', port)
  const address = clientAddressOf(c, 'proxy') === UNKNOWN_ADDRESS ? undefined : addressOf(c)
  if (address !== undefined) headers.set('x-forwarded-for', address)
  const unverified = c.get('portcullis.unverifiedAuthorization')
  if (unverified !== undefined) headers.set('authorization', unverified)
  else if (isForwarded(received.get('authorization'), forwardAuthorization)) {
    copy('authorization')
    copy('dpop')
  }
  // Unchanged: only `;` separates cookies (RFC 6265 section 4.2.1), and a comma can be in a value.
  const cookies = forwardCookies ? received.get('cookie') : undefined
  const forwarded = cookies && withoutCookies(cookies, tokenCookies)
  if (forwarded) headers.set('cookie', forwarded)

  function copy(name: string): void {
    const value = received.get(name)
    if (value !== undefined) headers.set(name, value)
  }
}

function isForwarded(
  authorization: string | undefined,
  schemes: ProxyOptions['forwardAuthorization'],
): boolean {
  if (schemes === undefined || typeof schemes === 'boolean') return schemes === true
  const scheme = authorization && schemeOf(authorization)
  return schemes.some((name) => name.toLowerCase() === scheme)
}
