/** Types of rate limits: the rule, the request to count, and the state of a window. */

import type { Feature } from '../../validators/feature.ts'
import type { Mode } from '../../validators/mode.ts'
import type { Principal } from '../principal.ts'
import type { LeaseGrant, LeaseRequest, LeaseTerms } from './lease.ts'

/**
 * What happens to requests while a limit cannot be counted. `deny` answers 503. `allow` admits them
 * and records this in the audit event. The option is required, because no default is safe.
 */
export type OnUnavailable = 'deny' | 'allow'

/** The approximation of `@upstash/ratelimit`. A caller that exploits it gets twice the limit. */
export type UpstashEngine = Feature<'upstash'>

/**
 * The algorithm that counts. `exact`: no period of the window's length admits more than the limit,
 * and a request that admission refuses costs nothing.
 */
export type LimitEngine = 'exact' | UpstashEngine

export interface LimitRule {
  /** Name in the policy, in `RateLimit` headers and in audit events. */
  readonly name: string
  /** Units per window: requests, if a request costs 1. */
  readonly limit: number
  readonly windowSeconds: number
  /** Default `exact`. */
  readonly engine?: LimitEngine
  /** Units that a request uses: an integer up to the limit. Only for exact limits. Default 1. */
  readonly cost?: number
  /** What the limit needs beyond an exact window. Only for exact limits. Default: nothing. */
  readonly meter?: Meter | undefined
  /** What an isolate may lease in advance. Only for exact limits. Default: nothing. */
  readonly lease?: LeaseTerms | undefined
  readonly onUnavailable: OnUnavailable
  /** Default `enforce`. A limit in observe mode counts, and refuses no request. */
  readonly mode?: Mode
}

/** `rate`: an exact window. `day`, `month`: a quota of the calendar (UTC). */
export type MeterKind = 'rate' | 'day' | 'month' | 'concurrency'

/** The units of a limit in each plan. */
export interface PlanTable {
  /** By the name of the plan; undefined: the plan has no such limit. */
  readonly units: ReadonlyMap<string, number | undefined>
  readonly defaultPlan: string
}

/** What a limit of `plans()` or `quotas()` needs beyond an exact window. */
export interface Meter extends Feature<'plans'> {
  readonly kind: MeterKind
  /** Default: the units are those of the rule, for every caller. */
  readonly plans?: PlanTable | undefined
  /** What selects the plan of a caller, in this order. */
  readonly planBy: readonly string[]
  /** Of the adapter of the store; the same for all meters. */
  readonly scripts: object
  /** The parameter after `q` in `RateLimit-Policy`. */
  readonly scale: string
  /** Returns the name of a new slot, if the limit counts requests in flight. */
  newSlot(): string | undefined
  /** Adds the sources of the caller's plan, and a new slot. */
  complete(request: LimitRequest, principal: Principal | null): Promise<LimitRequest>
}

/** A request in flight that a limit counts. Its methods never reject. */
export interface Slot {
  readonly renewMs: number
  renew(): Promise<void>
  release(): Promise<void>
}

/** A rule, and the window that it counts. */
export interface LimitRequest {
  readonly rule: LimitRule
  /** The key of the window, from `limitKeyOf`: unique over all limits, and bounded. */
  readonly key: string
  /**
   * The party of the window: the subject (also of an API key), client, tenant or address, or the value
   * of the policy's function. A cluster has the window in the lane of this text. Default: the caller.
   */
  readonly owner?: string | undefined
  /**
   * The key of the window that the caller would have without its tenant, if it differs. An override of
   * this window applies as well; of two overrides, the smaller one.
   */
  readonly everywhere?: string | undefined
  /** The units to lease as well. Default: none. */
  readonly leaseRequest?: LeaseRequest | undefined
  /**
   * Of a metered limit: where the plan of the caller may be, the first of which applies. Ends of keys
   * of records, and `=pro` for a plan that the token names.
   */
  readonly planSources?: readonly string[] | undefined
  /** Of a metered limit that counts requests in flight: the name of a new slot. */
  readonly slot?: string | undefined
}

/** The state of one window after this request was counted or refused. */
export interface RateLimit {
  readonly rule: LimitRule
  /** The limit in force. 0: the caller's plan has no such limit. */
  readonly limit: number
  /** Units left; never negative. */
  readonly remaining: number
  /**
   * Milliseconds since the epoch. For an exact limit: when more units become free, enough for
   * another request if one does not fit now. For `upstash`: when the window ends or, if it is
   * exhausted, when the next request can be counted.
   */
  readonly resetMs: number
  /** Whether the request fits into the window. It was counted, unless another limit refused it. */
  readonly admitted: boolean
  /** The plan whose units are exhausted. Absent if the request fits, or an override is in force. */
  readonly plan?: string
  /** If units were requested in advance. They are not part of `remaining`. */
  readonly grant?: LeaseGrant
  /** The slot of a request in flight, if this request took one. */
  readonly slot?: Slot
}
