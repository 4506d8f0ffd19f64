/** Types of rate limits: the rule, the request to count, and the state of a window. */
import type { Feature } from '../validators/feature.ts'
import type { Mode } from '../validators/mode.ts'
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
  /** What an isolate may lease in advance. Only for exact limits. Default: nothing. */
  readonly lease?: LeaseTerms | undefined
  readonly onUnavailable: OnUnavailable
  /** Default `enforce`. A limit in observe mode counts, and refuses no request. */
  readonly mode?: Mode
}

/** A rule, and the window that it counts. */
export interface LimitRequest {
  readonly rule: LimitRule
  /** The key of the window, from `limitKeyOf`: unique over all limits, and bounded. */
  readonly key: string
  /** The units to lease as well. Default: none. */
  readonly leaseRequest?: LeaseRequest | undefined
}

/** The state of one window after this request was counted or refused. */
export interface RateLimit {
  readonly rule: LimitRule
  /** The limit in force. */
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
  /** If units were requested in advance. They are not part of `remaining`. */
  readonly grant?: LeaseGrant
}
