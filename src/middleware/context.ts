/** Variables of the pipeline: which middleware sets each of them, and their accessors. */
import type { Context } from 'hono'
import type { RateLimit } from '../access/admission/limit.ts'
import type { Principal } from '../access/principal.ts'
import type { RelationVerdict } from '../access/relations/checker.ts'
import type { RelationQuery } from '../access/relations/decision-point.ts'
import type { RelationRule } from '../access/relations/rule.ts'
import type { DpopProof } from '../access/tokens/dpop.ts'
import type { Reference } from '../access/tokens/reference.ts'
import type { Timeline } from '../audit/timeline.ts'
import { OutOfOrder } from '../errors.ts'
import type { WaitUntil } from '../isolate/after-response.ts'
import type { PolicyRoute } from '../policy/policy.ts'
import type { Denial } from '../problems/reasons.ts'

/** The names begin with `portcullis.`, so that they never collide with variables of an app. */
export interface GatewayVariables {
  /** Set by `requestId`: a UUIDv7. */
  'portcullis.requestId': string
  /** Set by `requestId`: the client's own id, 1 to 128 of `A-Z a-z 0-9 . _ -`. */
  'portcullis.parentRequestId': string | null
  /** Set by `requestId`: the trace to continue. */
  'portcullis.trace': TraceContext
  /** Set by the pipeline for each matched route. */
  'portcullis.route': Pick<PolicyRoute, 'path' | 'limits' | 'host' | 'origin'>
  /** Set by `proxy` if the caller's origin is not always that of the route. */
  'portcullis.origin': string
  /** Set on the first call of `receivedHeaders`: fields by lower-case name, of the request `of`. */
  'portcullis.receivedHeaders': {
    readonly of: Request
    readonly fields: Map<string, string>
  }
  /** Set by `leaveAuthorization`: a credential that only the origin verifies. */
  'portcullis.unverifiedAuthorization': string
  /** Set by `sanitizeHeaders`: a copy of the headers for the origin, by lower-case name. */
  'portcullis.forwardHeaders': Map<string, string>
  /** Set by `clientAddress`: IPv6 as `2001:db8:1:2::/64`; `unknown` if there is none. */
  'portcullis.clientAddress': string
  /** Set by `throttle` for requests with a credential, unless failures are only observed. */
  'portcullis.credentialCheck': CredentialCheck
  /** Set by `authenticate` or `admit`; null for an anonymous caller. */
  'portcullis.principal': Principal | null
  /** Set by `authenticate` if the request has the scheme `DPoP`, or the route requires a proof. */
  'portcullis.usesDpop': true
  /** Set by `authenticate` if `admit` must complete the check of the credential, in Redis. */
  'portcullis.pending': PendingCredential
  /** Set by `admit`. */
  'portcullis.rateLimits': readonly RateLimit[]
  /** Set by `admit`: names of limits that could not be counted and admitted the request. */
  'portcullis.uncountedLimits': readonly string[]
  /** Set by `resolveRelation`, which `admit`, `authorize` and `readmit` call. */
  'portcullis.relation': RequestRelation
  /** Set by `observe`, for `audit`: what a rule in observe mode would have refused. */
  'portcullis.observed': string[]
  /** Set by `recordField`, for `audit`: what features recorded. */
  'portcullis.fields': Record<string, string>
  /** Set by `limitBody`, and replaced with the bytes by stages that read it. */
  'portcullis.body': ReadableStream<Uint8Array> | Uint8Array | null
  /**
   * Set by `admit` and by stages that read a body, if they outlast an admission: when the first of
   * them began, in milliseconds since the epoch.
   */
  'portcullis.heldUpSinceMs'?: number
  /** Set by `audit`. */
  'portcullis.timeline': Timeline
}

type Prefixed<Name extends string> = `portcullis.${Name}`
type NameOf<Key> = Key extends Prefixed<infer Name> ? Name : never
type VariableName = NameOf<keyof GatewayVariables>

type Some<Name extends VariableName> = Pick<GatewayVariables, Prefixed<Name>>
export type RequestIdVariables = Some<'requestId' | 'parentRequestId' | 'trace'>
export type RouteVariables = Some<'route'>
export type ReceivedHeadersVariables = Some<'receivedHeaders'>
export type UnverifiedAuthorizationVariables = Some<'unverifiedAuthorization'>
export type ForwardHeadersVariables = Some<'forwardHeaders'>
export type ClientAddressVariables = Some<'clientAddress'>
export type CredentialCheckVariables = Some<'credentialCheck'>
export type PrincipalVariables = Some<'principal'>
export type CredentialVariables = Some<'pending' | 'usesDpop'>
export type RateLimitVariables = Some<'rateLimits' | 'uncountedLimits'>
export type RelationVariables = Some<'relation'>
export type ObservedVariables = Some<'observed'>
export type BodyVariables = Some<'body' | 'heldUpSinceMs'>
export type HeldUpVariables = Some<'heldUpSinceMs'>
export type TimelineVariables = Some<'timeline'>

/** W3C trace context. Ids are lower-case hex digits. */
export interface TraceContext {
  readonly traceId: string
  /** The gateway's span. */
  readonly spanId: string
  /** The caller's span; undefined if the trace begins here. */
  readonly parentSpanId: string | undefined
  readonly isSampled: boolean
  /** `00-{traceId}-{spanId}-{flags}`, with the gateway's span. */
  readonly traceparent: string
  readonly tracestate: string | undefined
}

/**
 * The check of a credential that this isolate has not cached. `throttle` creates it, `authenticate` begins
 * it, and the stage that completes it ends it: `authenticate`, or `admit` for a pending credential. A
 * refusal before then counts as a failure.
 */
export interface CredentialCheck {
  /**
   * Begins the check, if necessary after other checks of the address have ended. Resolves to true
   * if it has waited: the credential may be cached now. Throws `Denied` (`rate_limited`) if the
   * address has used up its failures, `Unavailable` if it waits too long.
   */
  begin(): Promise<boolean>
  /** Ends the check without a failure: the credential is valid. */
  passed(): void
}

export interface PendingCredential {
  /** The reference to resolve. Undefined if the principal is identified. */
  readonly reference: Reference | undefined
  /** The proof of possession to check for replay. */
  readonly proof: DpopProof | undefined
  /** Ended by `admit`. Undefined: failures of the credential do not count. */
  readonly check: CredentialCheck | undefined
  /** Sets `principal`, for refused requests as well: the audit event names the caller. */
  identified(principal: Principal): void
}

/** The query is valid for this rule, this caller and the path parameters of this handler. */
export interface RequestRelation {
  readonly rule: RelationRule
  readonly principal: Principal
  readonly routeIndex: number
  /** The query, or why the request cannot form one. */
  readonly query: RelationQuery | Denial
  /** The outcome in the call of `admit`. Undefined: that call did not check the relation. */
  verdict: RelationVerdict | undefined
}

/** The part of Hono's `Context` that is needed (`Context` itself is invariant). */
export interface Carrier {
  get(name: never): unknown
  set(name: never, value: never): void
}

/**
 * Creates an accessor that throws {@link OutOfOrder} if the middleware that sets the variable did
 * not run. `by` is the middleware that reads the variable.
 */
const reader =
  <Name extends keyof GatewayVariables>(name: Name, accessor: string, ...setters: string[]) =>
  (c: Pick<Carrier, 'get'>, by = accessor): GatewayVariables[Name] => {
    // Not `c.var`: Hono creates that object again at each access.
    const value = (c as { get(name: string): unknown }).get(name)
    if (value !== undefined) return value as GatewayVariables[Name]
    const needed = setters.filter((setter) => setter !== by).map((setter) => `${setter}()`)
    throw new OutOfOrder(`${by}: ${needed.join(' and ')} must run before it`)
  }

export const requestIdOf = /* @__PURE__ */ reader(
  'portcullis.requestId',
  'requestIdOf',
  'requestId',
)
export const traceOf = /* @__PURE__ */ reader('portcullis.trace', 'traceOf', 'requestId')
export const routeOf = /* @__PURE__ */ reader('portcullis.route', 'routeOf', 'route')
export const forwardHeadersOf = /* @__PURE__ */ reader(
  'portcullis.forwardHeaders',
  'forwardHeadersOf',
  'sanitizeHeaders',
)
export const clientAddressOf = /* @__PURE__ */ reader(
  'portcullis.clientAddress',
  'clientAddressOf',
  'clientAddress',
)
/** Null for an anonymous caller. Throws before `admit` for a reference that is not cached. */
export const callerOf = /* @__PURE__ */ reader(
  'portcullis.principal',
  'callerOf',
  'authenticate',
  'admit',
)
export const bodyOf = /* @__PURE__ */ reader('portcullis.body', 'bodyOf', 'limitBody')

/** Records what a rule would have refused, such as `rate_limited:standard`, for the audit event. */
export function observe(c: Carrier, reason: string): void {
  const noted = c.get('portcullis.observed' as never) as
    | ObservedVariables['portcullis.observed']
    | undefined
  if (noted === undefined) c.set('portcullis.observed' as never, [reason] as never)
  else if (!noted.includes(reason)) noted.push(reason)
}

const MAX_FIELDS = 16
/** Of a field of an audit event. */
export const MAX_FIELD_CHARS = 256

/**
 * Records a field of a feature for the audit event. A longer value is cut to 256 characters. An event has
 * at most 16 fields; further ones are not recorded.
 */
export function recordField(c: Carrier, name: string, value: string): void {
  const fields = (c.get('portcullis.fields' as never) ??
    {}) as GatewayVariables['portcullis.fields']
  if (!Object.hasOwn(fields, name) && Object.keys(fields).length >= MAX_FIELDS) return
  const text = value.slice(0, MAX_FIELD_CHARS).toWellFormed()
  c.set('portcullis.fields' as never, { ...fields, [name]: text } as never)
}

/** Outside of Workers, promises run to completion by themselves, and rejections are ignored. */
export function waitUntilOf(c: Context): WaitUntil {
  try {
    const context = c.executionCtx
    return (promise) => context.waitUntil(promise)
  } catch {
    return (promise) => {
      promise.catch(() => {})
    }
  }
}
