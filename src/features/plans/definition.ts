/** Types of plans and quotas, as a user writes them. */
import type { OnUnavailable } from '../../access/admission/limit.ts'
import type { LimitBy } from '../../policy/definition.ts'
import type { LimitText } from '../../validators/limit.ts'
import type { Mode } from '../../validators/mode.ts'

/** An exact window of a plan. */
export interface RateDefinition {
  /** Requests per window. */
  readonly limit: number
  /** Length of the window in seconds. */
  readonly windowSeconds: number
}

/** What a caller may use. At least one field. */
export interface AllowanceDefinition {
  /** One rate, or several with different windows: `100/min`. */
  readonly rate?: LimitText | RateDefinition | readonly (LimitText | RateDefinition)[]
  /** Units of each calendar day (UTC). */
  readonly perDay?: number
  /** Units of each calendar month (UTC). */
  readonly perMonth?: number
  /** Requests in flight at the same time. */
  readonly concurrency?: number
}

/** Where an operator, or the token, names the plan of a caller. */
export type PlanBy = 'key' | 'subject' | 'client' | 'tenant' | 'claim'

/** Settings that all limits of plans or quotas share. */
export interface MeteredDefinition {
  /** The party that is counted. Default `key`: the API key; without one, the subject. */
  readonly by?: LimitBy
  /** Default `deny`. */
  readonly onUnavailable?: OnUnavailable
  /** `observe`: counts without refusing. Default `enforce`. */
  readonly mode?: Mode
  /** Units that a request takes from rates and quotas. Default 1. */
  readonly cost?: number
  /**
   * How long a request in flight is counted if its gateway ends without notice, 5 to 3,600. A gateway
   * renews it during longer responses. Default 30.
   */
  readonly slotSeconds?: number
}

export interface PlansDefinition<PlanName extends string> extends MeteredDefinition {
  /** By name: a rate such as `100/min`, or all limits of the plan. */
  readonly plans: Readonly<Record<PlanName, LimitText | AllowanceDefinition>>
  /** The plan of a caller without another stored plan. */
  readonly default: NoInfer<PlanName>
  /**
   * Where the plan of a caller is looked up, the first of which applies. `claim` is the issuer's
   * `planClaim`. Default: `['key', 'client', 'tenant', 'claim']`.
   */
  readonly planBy?: readonly PlanBy[]
}

export interface QuotasDefinition extends MeteredDefinition, AllowanceDefinition {}
