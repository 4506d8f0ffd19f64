/** Answers the authorization requests of proxies. */
import type { Context } from 'hono'
import { Denied } from '../../errors.ts'
import type { FeatureParts, ListenerGateway, ListenerParts } from '../../gateway/feature.ts'
import { publicOrigins } from '../../http/public-origin.ts'
import { problemOf } from '../../middleware/problem-handler.ts'
import type { Origin } from '../../origin/origin.ts'
import type { Policy } from '../../policy/policy.ts'
import { nameOfRoute, type PolicyRoute } from '../../policy/route.ts'
import { problem, problemResponse } from '../../problems/problem.ts'
import { IDENTITY_HEADERS } from '../../validators/identity-headers.ts'
import { type Described, readDescribed } from './described-request.ts'
import type { Form } from './schema.ts'

/** The status of a decision, for proxies that pass on few statuses. */
const STATUS_HEADER = 'X-Portcullis-Status'
/** Names what the gateway could not decide. */
const UNDECIDED_HEADER = 'X-Portcullis-Undecided'

const PASSED_ON = ['x-request-id', 'traceparent', 'tracestate']
/** Of a response that allows. The others describe a response of the origin. */
const KEPT = /^(?:ratelimit|set-cookie|server-timing|dpop-nonce)/

export const BODY_ELSEWHERE = {
  code: 'body_elsewhere',
  status: 403,
  title: 'Body needed for the decision',
} as const

const NO_STORE = { 'Cache-Control': 'no-store' }

export interface DecisionOptions
  extends Pick<FeatureParts, 'addressOf' | 'publicUrl'>,
    Pick<ListenerParts, 'createGateway'> {
  readonly routes: readonly PolicyRoute[]
  readonly identityHeaders: Policy['identityHeaders']
  /** Undefined: the form follows from the authorization request. */
  readonly form: Form | undefined
  /** Names of routes that are decided without the body. */
  readonly withoutBody: ReadonlySet<string>
}

/** Reports whether a part of the decision about a route needs the body of the request. */
export const needsBody = ({ method, input, inspect, mcp }: PolicyRoute): boolean =>
  input.body !== undefined ||
  mcp !== undefined ||
  inspect?.jsonRpc !== undefined ||
  (inspect !== undefined && method !== 'GET')

/**
 * Creates what answers at `/-/decide`. The pipeline of the gateway runs for the request that the proxy
 * describes. In the place of the origin, it records which headers the origin would get.
 */
export function createDecisions({
  createGateway,
  routes,
  identityHeaders,
  form,
  withoutBody,
  addressOf,
  publicUrl,
}: DecisionOptions): ListenerGateway {
  const undecided = new Set(routes.filter(needsBody).map(nameOfRoute))
  const allowed = new WeakMap<Request, Allowed>()
  const origin: Origin = {
    async send({ incoming, headers, route = '' }) {
      const lacksBody = undecided.has(route)
      if (lacksBody && !withoutBody.has(route))
        throw new Denied({
          code: 'refused_by_feature',
          problem: BODY_ELSEWHERE,
          detail:
            'The decision about this route needs the body of the request, which is elsewhere.',
        })
      allowed.set(incoming, { headers, lacksBody })
      return new Response(null)
    },
  }
  const names = [...IDENTITY_HEADERS, ...identityHeaders.keys()]
  const originOf = publicOrigins(publicUrl)
  const gateway = createGateway({
    origin,
    routes: routes.map(withoutBodyStages),
    // The proxy opens it. The gateway decides about the handshake as about another request.
    upgrades: { isPossible: () => true, accept: (received) => received },
    publicOriginOf: (c) => originOf(c.req.raw.url),
    addressOf: (c) => (isForwarded(c) ? addressOf?.(c) : undefined),
  })
  return {
    async fetch(authorizationRequest, bindings, context) {
      let described: Described | undefined
      try {
        described = readDescribed(authorizationRequest, form)
      } catch (error) {
        return inForm(problemResponse(problemOf(error as Error)), form)
      }
      if (described === undefined) return problemResponse(problem('not_found', ELSEWHERE))
      const request = described.request as unknown as Request
      if (hasAlias(request.headers, names))
        return inForm(problemResponse(problem('malformed_request', ALIAS)), described.form)
      const response = await gateway.fetch(request, bindings, context)
      const decided = allowed.get(request)
      // A stage may refuse after the place of the origin was reached.
      const isAllowed = decided !== undefined && response.ok
      const decision = isAllowed ? allowance(response, decided, names) : refusal(response)
      return inForm(decision, described.form)
    },
  }
}

/**
 * Servers read another method or path, or another client, host or scheme from these. The shipped files remove the first
 * in this spelling, and the proxies write the others.
 */
const OTHER_REQUEST =
  /^x-(?:forwarded-|real-ip$|(?:original|rewrite)-(?:ur[il]|method|host|path)$|http-method|method-override)/

/**
 * Reports whether a header of the client, such as `X_Auth_Roles`, is another spelling of one about the caller,
 * or of one about another request. The proxy passes it on, and servers on CGI read it as that one.
 */
function hasAlias(headers: Headers, names: readonly string[]): boolean {
  for (const name of headers.keys())
    if (/[^a-z0-9-]/.test(name)) {
      const plain = name.replace(/[^a-z0-9]/g, '-')
      if (plain.startsWith('x-auth-') || OTHER_REQUEST.test(plain) || names.includes(plain))
        return true
    }
  return false
}

const ALIAS =
  'A header resembles one that only the gateway or the proxy may send, or one with another method or path.'
const ELSEWHERE = 'This listener has only the decision endpoint.'

interface Allowed {
  readonly headers: ReadonlyMap<string, string>
  readonly lacksBody: boolean
}

/** Without the address that the proxy reports, all clients would be one. */
const isForwarded = (c: Context): boolean =>
  c.req.raw.headers.has('x-forwarded-for') || c.req.raw.headers.has('forwarded')

/** Returns a route without what reads bodies, and what shares calls of an origin. */
function withoutBodyStages({ mcp: _, ...route }: PolicyRoute): PolicyRoute {
  const { body: __, ...input } = route.input
  const { jsonRpc: ___, ...inspect } = route.inspect ?? {}
  return { ...route, input, inspect: route.inspect && inspect, coalesce: false }
}

function allowance(
  { headers: decided }: Response,
  { headers, lacksBody }: Allowed,
  names: readonly string[],
): Response {
  const response = new Response(null, { headers: NO_STORE })
  for (const [name, value] of decided) if (KEPT.test(name)) response.headers.append(name, value)
  for (const name of PASSED_ON) {
    const value = headers.get(name)
    if (value !== undefined) response.headers.set(name, value)
  }
  // Also empty: some proxies keep the header of the client if the response has none.
  for (const name of names) response.headers.set(name, headers.get(name) ?? '')
  if (lacksBody) response.headers.set(UNDECIDED_HEADER, 'body')
  return response
}

/** A path or a method that the policy does not have is a refusal here: proxies expect no 404. */
function refusal(response: Response): Response {
  const { status, headers, body } = response
  // Proxies expect 302; browsers follow both with GET.
  if (status >= 300 && status < 400) return new Response(body, { status: 302, headers })
  if (status >= 400 && status !== 404 && status !== 405) return new Response(body, response)
  body?.cancel().catch(() => {})
  const id = headers.get('x-request-id') ?? undefined
  return problemResponse(problem('insufficient_permission', UNKNOWN_ROUTE), {
    requestId: id,
    ...(id !== undefined && { headers: { 'X-Request-Id': id } }),
  })
}

const UNKNOWN_ROUTE = 'The policy has no route for this method and path.'

/** Returns a response as the proxies of a form expect it. */
function inForm(response: Response, form: Form | undefined): Response {
  response.headers.set(STATUS_HEADER, String(response.status))
  return form === 'original' ? forFewStatuses(response) : response
}

/** nginx supports 2xx, 401 and 403; it reads the others from {@link STATUS_HEADER}. An outage stays one. */
function forFewStatuses(response: Response): Response {
  const { status, body, headers } = response
  if (status < 300 || status === 401 || status >= 500) return response
  return new Response(body, { status: status < 400 ? 401 : 403, headers })
}
