/** The vocabulary of rate limits: what a rule is, and what a consulted window says. */
import type { Mode } from '../validators/mode.ts'
import type { LeaseAsk, LeaseGrant, LeaseTerms } from './lease.ts'

/**
 * What happens to requests while nobody can count them: `deny` answers 503, `allow` lets them
 * through and says so in the audit event. There is no safe default, so there is none.
 */
export type OnUnavailable = 'deny' | 'allow'

/**
 * Who counts. `exact`: in no stretch of time of the window's length is more than the limit admitted, and
 * a request that admission refuses has cost nothing. `upstash`: `@upstash/ratelimit`'s approximation,
 * which a caller who aims at it gets twice the limit out of.
 */
export type LimitEngine = 'exact' | 'upstash'

/** One sliding-window limit. */
export interface LimitRule {
  /** Name in the policy, in `RateLimit` headers and in audit events. */
  readonly name: string
  /** Requests per window; units, where one costs more than one. */
  readonly limit: number
  readonly windowSeconds: number
  /** Default `exact`. */
  readonly engine?: LimitEngine
  /** Units that a request takes, a whole number up to the limit; of exact limits only. Default 1. */
  readonly cost?: number
  /** What an isolate may take ahead; of exact limits only. Default nothing. */
  readonly lease?: LeaseTerms | undefined
  readonly onUnavailable: OnUnavailable
  /** Default `enforce`. One that is observed counts, and refuses nobody. */
  readonly mode?: Mode
}

/** A rule, and whose window it counts. */
export interface LimitRequest {
  readonly rule: LimitRule
  /**
   * The window, unique over all limits: the rule's name, and whom it counts. Bounded and without
   * collisions: built with `keyPart`, never from raw input.
   */
  readonly key: string
  /** What the isolate wants besides; default nothing. */
  readonly ask?: LeaseAsk | undefined
}

/** The state of one window after this request was counted (or refused). */
export interface RateLimit {
  readonly rule: LimitRule
  /** The limit in force. */
  readonly limit: number
  /** Units left; never negative. */
  readonly remaining: number
  /**
   * Milliseconds since the epoch: of an exact limit, when more units are free, enough for another
   * request where it could not be counted now; of the other engine, when the window ends or, if it
   * is exhausted, when the next request can be counted.
   */
  readonly resetMs: number
  /** Whether there was room for this request: it was counted, if no other limit refused it. */
  readonly admitted: boolean
  /** Where units were asked for ahead. They do not count as left. */
  readonly grant?: LeaseGrant
}
