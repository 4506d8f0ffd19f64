/**
 * What the stages of the pipeline know of a request. Each field is set by the middleware that
 * its doc names, and read through that middleware's accessor.
 */
import type { RateLimit } from './admission/limit.ts'
import type { Timeline } from './audit/timeline.ts'
import type { PolicyRoute } from './policy.ts'
import type { RelationVerdict } from './relations/checker.ts'
import type { DpopProof } from './tokens/dpop.ts'
import type { Principal } from './tokens/principal.ts'
import type { Reference } from './tokens/reference.ts'

/** Set by `requestId`. */
export interface RequestIdVariables {
  /** UUIDv7, ours. */
  requestId: string
  /** The client's own id, kept for correlation: 1 to 128 of `A-Z a-z 0-9 . _ -`. */
  parentRequestId: string | null
  /** W3C trace context to send on: our span as parent-id. */
  trace: TraceContext
}

export interface TraceContext {
  /** 32 lower-case hex digits. */
  readonly traceId: string
  /** Ours, 16 lower-case hex digits. */
  readonly spanId: string
  /** The caller's; undefined where the trace begins here. */
  readonly parentSpanId: string | undefined
  /** Whether spans of this trace are recorded. */
  readonly isSampled: boolean
  /** `00-{traceId}-{our span}-{flags}`. */
  readonly traceparent: string
  readonly tracestate: string | undefined
}

/** Set by the pipeline for each matched route. */
export interface RouteVariables {
  route: PolicyRoute
}

/** Set by whoever asks for them first: see `receivedHeaders`. */
export interface ReceivedHeadersVariables {
  receivedHeaders: {
    /** The request that they came with. */
    readonly of: Request
    /** By lower-case name. */
    readonly fields: ReadonlyMap<string, string>
  }
}

/**
 * Set by `sanitizeHeaders`: what may go on to the origin, by lower-case name. A copy; the request is
 * untouched.
 */
export interface ForwardHeadersVariables {
  forwardHeaders: Map<string, string>
}

/** Set by `clientAddress`. */
export interface ClientAddressVariables {
  /** Normalised; IPv6 as `2001:db8:1:2::/64`; `unknown` where the platform told none. */
  clientAddress: string
}

/**
 * Set by `authenticate`; null for an anonymous caller. For an opaque token or an API key that this
 * isolate does not know, set by `admit`.
 */
export interface PrincipalVariables {
  principal: Principal | null
}

/** Set by `authenticate` where something is left for `admit` to settle. */
export interface CredentialVariables {
  pending: PendingCredential
}

/** What only Redis can tell of a credential. */
export interface PendingCredential {
  /** Whose is it? Undefined where the principal is known. */
  readonly reference: Reference | undefined
  /** Was it used before? Undefined without a proof of possession. */
  readonly proof: DpopProof | undefined
}

/** Set by `admit`. */
export interface RateLimitVariables {
  rateLimits: readonly RateLimit[]
  /** Names of limits that could not be counted and let the request through. */
  uncountedLimits: readonly string[]
}

/** Set by `admit` where it has learnt whether the caller has the relation that `authorize` demands. */
export interface RelationVariables {
  relation: {
    /** As `queryKey` names what was asked. */
    readonly of: string
    readonly verdict: RelationVerdict
  }
}

/** Set by `observe`, for `audit`: what a rule in observe mode would have refused. */
export interface ObservedVariables {
  observed: string[]
}

/** Set by `limitBody` and replaced by `validate` once it has read it: the body to send on. */
export interface BodyVariables {
  body: ReadableStream<Uint8Array> | Uint8Array | null
  /** Set by whoever read the body, where that took longer than an admission holds: when it began. */
  heldUpSinceMs?: number
}

/** Set by `audit`: entry times of the stages, so that the event can tell what each took. */
export interface TimelineVariables {
  timeline: Timeline
}

export type GatewayVariables = RequestIdVariables &
  RouteVariables &
  ReceivedHeadersVariables &
  ForwardHeadersVariables &
  ClientAddressVariables &
  PrincipalVariables &
  CredentialVariables &
  RateLimitVariables &
  RelationVariables &
  ObservedVariables &
  BodyVariables &
  TimelineVariables

/** The slice of Hono's `Context` that an accessor needs (`Context` itself is invariant). */
interface Carrier {
  get(name: never): unknown
}

/** Makes the accessor of a variable; it throws where the middleware that sets it did not run. */
function reader<Variables>() {
  return <Name extends keyof Variables & string>(name: Name, setter: string) =>
    (c: Carrier): Variables[Name] => {
      // Not `c.var`: Hono builds that object anew at each access.
      const value = (c as { get(name: string): unknown }).get(name)
      if (value === undefined) throw new Error(`${name}: ${setter}() must run before this`)
      return value as Variables[Name]
    }
}

export const requestIdOf = reader<RequestIdVariables>()('requestId', 'requestId')
export const traceOf = reader<RequestIdVariables>()('trace', 'requestId')
export const routeOf = reader<RouteVariables>()('route', 'route')
export const forwardHeadersOf = reader<ForwardHeadersVariables>()(
  'forwardHeaders',
  'sanitizeHeaders',
)
export const clientAddressOf = reader<ClientAddressVariables>()('clientAddress', 'clientAddress')
/**
 * The principal, or null for an anonymous caller. Behind `authenticate` alone it throws for an opaque
 * token or an API key that this isolate does not know: `admit` must run first.
 */
export const callerOf = reader<PrincipalVariables>()('principal', 'authenticate() and admit')
export const bodyOf = reader<BodyVariables>()('body', 'limitBody')
