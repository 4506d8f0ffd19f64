/** What a user writes of a policy: roles, limits, and the table of routes. */
import type * as z from 'zod'
import type { AbuseDefinition } from './admission/abuse-definition.ts'
import type { LeaseTerms } from './admission/lease.ts'
import type { LimitEngine, OnUnavailable } from './admission/limit.ts'
import type { InspectDefinition } from './inspection/definition.ts'
import type { TokensDefinition } from './oauth/tokens-definition.ts'
import type { RelationDemand, RelationsDefinition } from './relations/definition.ts'
import type { Principal } from './tokens/principal.ts'
import type { Mode } from './validators/mode.ts'
import type { Method } from './validators/policy.ts'

/** What a limit's own key function may look at. */
export interface LimitSubject {
  readonly request: Request
  readonly principal: Principal | null
  /** The client's normalised address; IPv6 as its /64. */
  readonly address: string
}

/** Whose window is counted. A function returns any string; it is escaped or hashed before use. */
export type LimitBy = 'subject' | 'client' | 'tenant' | 'address' | ((of: LimitSubject) => string)

/** A limit as the policy states it. */
export interface LimitDefinition {
  /** Requests per window; units, where one costs more than one. */
  readonly limit: number
  readonly windowSeconds: number
  readonly by: LimitBy
  readonly onUnavailable: OnUnavailable
  /** `observe`: it counts and refuses nobody, and audit events tell whom. Default `enforce`. */
  readonly mode?: Mode
  /** Who counts: exact windows, or `@upstash/ratelimit`'s approximation. Default `exact`. */
  readonly engine?: LimitEngine
  /** What a request takes of an exact limit, 1 to the limit. Default 1. */
  readonly cost?: number
  /**
   * Units that an isolate may take ahead of an exact limit and spend without asking, and for how long;
   * needs `revocation.maxStalenessMs`. Default none: Redis is asked for each.
   */
  readonly lease?: LeaseTerms
}

/** A permission that a route demands, or is about to. */
export interface PermissionDemand {
  /** `<thing>:<verb>`. */
  readonly name: string
  /** `observe`: known callers without it pass, and audit events tell who. Default `enforce`. */
  readonly mode?: Mode
}

/** zod schemas of a route's input. Objects refuse unknown keys unless they say otherwise. */
export interface InputSchemas {
  readonly params?: z.ZodType
  readonly query?: z.ZodType
  readonly headers?: z.ZodType
  /** The body must then be `application/json`. */
  readonly body?: z.ZodType
}

/** One row of the route table. Exactly one of `permission` and `anonymous` must be given. */
export interface RouteDefinition<LimitName extends string = string> {
  readonly method: Method
  /** Hono pattern: `/orders/:id`, or `/files/*` for everything below. */
  readonly path: string
  /** `<thing>:<verb>`, demanded of roles and scopes. */
  readonly permission?: string | PermissionDemand
  /** What the caller must be to an object, besides having the permission. Default none. */
  readonly relation?: RelationDemand
  /** Anyone may call; a token that is presented must be good all the same. */
  readonly anonymous?: true
  readonly limits?: readonly LimitName[]
  readonly input?: InputSchemas
  /** Inspection of query and body; `{}` for its defaults. Default none. */
  readonly inspect?: InspectDefinition
  /** Largest request body, bytes. Default 1 MiB; 0 forbids a body. */
  readonly maxBodyBytes?: number
  /** How long the origin may take to send its headers, milliseconds. Default 15,000. */
  readonly originTimeoutMs?: number
  /** Forwards the caller's `Authorization`, and its `DPoP` proof, to the origin. Default false. */
  readonly forwardAuthorization?: boolean
  /** Forwards the caller's `Cookie` to the origin. Default false. */
  readonly forwardCookies?: boolean
  /** Origins (`https://app.test`) whose pages may open a WebSocket here. Default none. */
  readonly webSocketOrigins?: readonly string[]
  /**
   * Demands a token that is bound to a key, with a DPoP proof (RFC 9449). Default false: a bound
   * token needs its proof everywhere, and plain bearer tokens do as well.
   */
  readonly dpop?: boolean
  /**
   * Lets GET requests of one caller that are the same and come at once share one call to the origin.
   * Default false: an answer may then be as old as the first of them.
   */
  readonly coalesce?: boolean
}

/** How soon what is revoked, cut off or banned is refused. */
export interface RevocationDefinition {
  /**
   * For how long after that a caller may still be admitted who was found to be good before, in
   * milliseconds, 0 to 60,000. Default 0: Redis is asked with every request.
   */
  readonly maxStalenessMs?: number
}

export interface PolicyDefinition<RoleName extends string, LimitName extends string> {
  /** Permissions of each role: `orders:read`, `orders:*` or `*`. */
  readonly roles: Readonly<Record<RoleName, readonly string[]>>
  readonly limits: Readonly<Record<LimitName, LimitDefinition>>
  readonly routes: readonly RouteDefinition<NoInfer<LimitName>>[]
  /** The gateway's own tokens. Every field has a default. */
  readonly tokens?: TokensDefinition
  /** What is done about those who keep trying. Every field has a default. */
  readonly abuse?: AbuseDefinition
  /** How soon a revocation is in force. Every field has a default. */
  readonly revocation?: RevocationDefinition
  /** Relations between callers and objects. Default none. */
  readonly relations?: RelationsDefinition
  /** Requests that may wait in one isolate; more are refused at once. Default 1,000. */
  readonly maxConcurrentRequests?: number
}
