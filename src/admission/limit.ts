/** The vocabulary of rate limits: what a rule is, and what a consulted window says. */
import type { Mode } from '../validators/mode.ts'

/**
 * What happens to requests while nobody can count them: `deny` answers 503, `allow` lets them
 * through and says so in the audit event. There is no safe default, so there is none.
 */
export type OnUnavailable = 'deny' | 'allow'

/** One sliding-window limit. */
export interface LimitRule {
  /** Name in the policy, in `RateLimit` headers and in audit events. */
  readonly name: string
  /** Requests per window. */
  readonly limit: number
  readonly windowSeconds: number
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
}

/** The state of one window after this request was counted (or refused). */
export interface RateLimit {
  readonly rule: LimitRule
  /** The limit in force. */
  readonly limit: number
  /** Requests left; never negative. */
  readonly remaining: number
  /**
   * Milliseconds since the epoch: when the window ends or, on an exhausted limit, when the next
   * request can be counted.
   */
  readonly resetMs: number
  /** Whether this request was counted. */
  readonly admitted: boolean
}
