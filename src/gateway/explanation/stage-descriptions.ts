/** Says in plain words what each stage of the pipeline read, and why it passed or refused. */
import type { Context } from 'hono'
import { permissionSet } from '../../access/permissions.ts'
import { loginOf, type Principal } from '../../access/principal.ts'
import { reasonOfDenial } from '../../audit/reason.ts'
import type { GatewayVariables } from '../../middleware/context.ts'
import { receivedHeaders } from '../../middleware/request-headers.ts'
import { credentialsOfRoute } from '../../policy/credentials.ts'
import type { Policy, PolicyRoute } from '../../policy/policy.ts'
import type { Check } from '../../problems/checks.ts'
import type { Denial } from '../../problems/reasons.ts'
import { loginInWords } from '../../problems/step-up.ts'

type Watched = Context<{ Variables: GatewayVariables }>
type Read = Readonly<Record<string, unknown>>

/** Returns what the stage read. Names headers without their values, and describes the credential. */
export function readBy(stage: string, c: Watched, policy: Policy): Read {
  const route = findRoute(c, policy)
  switch (stage) {
    case 'shedLoad':
      return { maxConcurrentRequests: policy.maxConcurrentRequests }
    case 'canonicalPath':
      return { path: c.req.path }
    case 'sanitizeHeaders':
      return { removed: removedHeaders(c) }
    case 'clientAddress':
    case 'throttle':
      return { address: c.get('portcullis.clientAddress') }
    case 'limitBody':
      return { maxBytes: route?.maxBodyBytes, hasBody: c.req.raw.body !== null }
    case 'banOffenders':
      return { address: c.get('portcullis.clientAddress'), limits: namesOf(route) }
    case 'authenticate':
      return callerIn(c.get('portcullis.principal'))
    case 'admit':
      return admissionIn(c)
    case 'stepUp':
      return { ...describeLoginDemand(route), ...loginIn(c.get('portcullis.principal')) }
    case 'authorize':
      return describeDemand(c, route, policy)
    case 'validate':
      return { schemas: Object.keys(route?.input ?? {}) }
    case 'inspect':
      return { signatures: route?.inspect?.signatures !== undefined }
    case 'proxy':
      return {
        method: c.req.method,
        timeoutMs: route?.originTimeoutMs,
        ...(route !== undefined && addedFor(route, policy)),
      }
    default:
      return {}
  }
}

/** Returns why the stage let the request pass. */
export function whyPassed(stage: string, c: Watched, policy: Policy): string {
  const route = findRoute(c, policy)
  switch (stage) {
    case 'shedLoad':
      return 'fewer requests wait than the policy allows'
    case 'canonicalPath':
      return 'every server reads this path in the same way'
    case 'sanitizeHeaders':
      return removedHeaders(c).length === 0
        ? 'the origin may receive all headers'
        : 'the origin does not receive the headers that are removed'
    case 'clientAddress':
      return 'limits, bans and the audit event use this address'
    case 'limitBody':
      return c.req.raw.body === null
        ? 'the request has no body'
        : 'the body is not declared to be larger than the limit'
    case 'banOffenders':
      return 'refusals by later stages count towards a ban'
    case 'throttle':
      return 'the address has not used up its failed credentials'
    case 'authenticate':
      return whyAuthenticated(c)
    case 'admit':
      return 'this credential is not revoked; the caller is not banned and within its limits'
    case 'stepUp':
      return 'the login of the caller is of the kind and the age that the route demands'
    case 'authorize':
      return whyAuthorized(c, route, policy)
    case 'inspect':
      return 'query and body are in the accepted form'
    case 'validate':
      return Object.keys(route?.input ?? {}).length === 0
        ? 'the route has no schemas'
        : 'the input matches the schemas'
    case 'readmit':
      return 'the request was not delayed'
    default:
      return ''
  }
}

/** Returns why a stage refused the request: the precise reason, and what to change. */
export function whyRefused(denial: Denial, c: Watched, policy: Policy): string {
  const reason = reasonOfDenial(denial)
  switch (denial.code) {
    case 'token_rejected':
      return denial.detail === undefined
        ? reason
        : `${reason}: seen ${denial.detail.seen}, expected ${denial.detail.expected}`
    case 'missing_token':
      return 'the route is not open to anonymous callers, and the request has no credential'
    case 'sign_in_required':
      return `${whySignIn(denial.check, reason)}; a page in a window is redirected to the login, other requests get 401`
    case 'insufficient_user_authentication':
      return whyNotAuthenticated(denial.check, loginInWords(denial.demand))
    case 'permission_missing': {
      const granting = rolesWith(denial.permission, policy)
      const roles = granting.length === 0 ? 'no role grants it' : `it is of ${granting.join(', ')}`
      return `the caller does not have the permission ${denial.permission}; ${roles}`
    }
    case 'relation_missing':
      return `the caller does not have the relation ${denial.relation}`
    case 'rate_limited':
      return `the limit ${denial.limit} is used up; the next request fits in ${denial.retryAfterSeconds} s`
    case 'invalid_input':
      return denial.errors
        .map(({ in: where, path, message }) => `${where}${path}: ${message}`)
        .join('; ')
    case 'ambiguous_path':
      return `two servers could read the path ${c.req.path} in different ways (${denial.check})`
    case 'payload_too_large':
      return `the body is larger than ${denial.maxBytes} bytes`
    case 'unsupported_media_type':
      return `the body must be ${denial.expected}`
    case 'refused_by_feature':
      return `${reason}: ${denial.detail}`
    default:
      return reason
  }
}

function whySignIn(check: Check<'sign_in_required'>, reason: string): string {
  if (check === 'no_session') return 'no session and no token'
  if (check === 'step_up') return 'the route demands a kind or an age of the login'
  return `the session has ended, or the token is not valid (${reason})`
}

function whyNotAuthenticated(
  check: Check<'insufficient_user_authentication'>,
  demand: string,
): string {
  const why = {
    acr: 'the acr of the token is none of these',
    auth_time: 'the token has no usable auth_time',
    auth_time_old: 'the login is older',
  }
  return `the route demands a login ${demand}; ${check in why ? why[check as keyof typeof why] : check}`
}

/** What only the gateway adds to the request. The values of credentials are not read. */
function addedFor(route: PolicyRoute, policy: Policy): Read {
  const { identityHeaders, features } = policy
  const remarks = features.flatMap((feature) => feature.remarkOn?.(route) ?? [])
  return {
    remarks: remarks.length === 0 ? undefined : remarks,
    credentials: credentialsOfRoute(route, policy)?.words,
    identityHeaders:
      identityHeaders.size === 0
        ? undefined
        : [...identityHeaders].map(([name, path]) => `${name}: ${[path].flat().join(' or ')}`),
  }
}

/** The variable has the matched row of the policy. Operators' calls are not among its rows. */
function findRoute(c: Watched, { routes }: Policy): PolicyRoute | undefined {
  const matched = c.get('portcullis.route')
  return routes.find((route) => route === matched)
}

const namesOf = (route: PolicyRoute | undefined): readonly string[] =>
  (route?.limits ?? []).map(({ name }) => name)

function removedHeaders(c: Watched): readonly string[] {
  const forwarded = c.get('portcullis.forwardHeaders')
  if (forwarded === undefined) return []
  return [...receivedHeaders(c).keys()].filter((name) => !forwarded.has(name)).sort()
}

function callerIn(principal: Principal | null | undefined): Read {
  if (principal === null) return { caller: 'anonymous' }
  if (principal === undefined) return {}
  const { issuer, subject, client, tenant, session, roles, scopes, confirmation } = principal
  return {
    issuer,
    subject,
    client,
    tenant,
    session,
    roles,
    scopes,
    ...loginIn(principal),
    boundToKey: confirmation !== undefined,
    expires: expiryOf(principal),
  }
}

/** What is known of the login, by the names of its claims. Nothing for most tokens. */
function loginIn(principal: Principal | null | undefined): Read {
  const { acr, amr, authTimeSeconds } = (principal && loginOf(principal)) ?? {}
  return { acr, amr, auth_time: authTimeSeconds }
}

const describeLoginDemand = (route: PolicyRoute | undefined): Read => ({
  accepted: route?.authentication?.acr,
  maxAgeSeconds: route?.authentication?.maxAgeSeconds,
})

/** RFC 3339; null for a credential that does not expire. */
function expiryOf({ expiresAtSeconds }: Principal): string | null {
  return Number.isFinite(expiresAtSeconds) ? new Date(expiresAtSeconds * 1000).toISOString() : null
}

function whyAuthenticated(c: Watched): string {
  const principal = c.get('portcullis.principal')
  if (principal === null) return 'the route is open to anonymous callers'
  if (principal === undefined) return 'the next stage looks the credential up in Redis'
  return 'the credential is valid'
}

function admissionIn(c: Watched): Read {
  const limits = (c.get('portcullis.rateLimits') ?? []).map(({ rule, limit, remaining }) => ({
    name: rule.name,
    limit,
    remaining,
  }))
  const { query } = c.get('portcullis.relation') ?? {}
  return {
    // A caller with an opaque credential is identified here.
    ...(c.get('portcullis.pending')?.reference && callerIn(c.get('portcullis.principal'))),
    limits,
    ...(query !== undefined && !('code' in query) && { relation: relationText(query) }),
  }
}

const relationText = (query: { object: string; relation: string; subject: string }): string =>
  `${query.object}#${query.relation}@${query.subject}`

function describeDemand(c: Watched, route: PolicyRoute | undefined, policy: Policy): Read {
  const permission = route?.permission
  const principal = c.get('portcullis.principal')
  const { query, verdict } = c.get('portcullis.relation') ?? {}
  return {
    permission,
    mode: route?.permissionMode ?? 'enforce',
    roles: principal?.roles ?? [],
    scopes: principal?.scopes ?? [],
    grantedTo: permission === undefined ? [] : rolesWith(permission, policy),
    ...(query !== undefined && {
      relation: 'code' in query ? query.code : relationText(query),
      ...(verdict !== undefined && 'outcome' in verdict && { outcome: verdict.outcome }),
    }),
  }
}

function whyAuthorized(c: Watched, route: PolicyRoute | undefined, policy: Policy): string {
  const permission = route?.permission
  if (permission === undefined) return 'the route requires no permission'
  const { roles = [], scopes = [] } = c.get('portcullis.principal') ?? {}
  const granting = rolesWith(permission, policy).filter((role) => roles.includes(role))
  const relation = route?.relation === undefined ? '' : `, and the relation ${route.relation.name}`
  if (granting.length > 0)
    return `${granting.join(', ')} has the permission ${permission}${relation}`
  if (permissionSet(scopes).covers(permission))
    return `the scopes grant the permission ${permission}${relation}`
  return `the permission ${permission} is only observed`
}

function rolesWith(permission: string, { roles }: Pick<Policy, 'roles'>): readonly string[] {
  return [...roles].flatMap(([role, patterns]) =>
    permissionSet(patterns).covers(permission) ? [role] : [],
  )
}
