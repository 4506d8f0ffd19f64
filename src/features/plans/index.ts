/** Plans, quotas and concurrency: `import { plans, quotas } from 'portcullis/plans'`. */

import type { LimitGroup } from '../../policy/definition.ts'
import type { PlansDefinition, QuotasDefinition } from './definition.ts'
import { limitGroup, limitsOfPlans, limitsOfQuotas } from './limits.ts'
import { METER_SCRIPTS } from './redis/scripts.ts'

export type {
  AllowanceDefinition,
  PlanBy,
  PlansDefinition,
  QuotasDefinition,
} from './definition.ts'

/**
 * Returns limits whose size depends on the plan of the caller, for the policy's `limits`. A route
 * names them like any limit.
 *
 * @example
 * ```ts
 * limits: {
 *   plan: plans({
 *     plans: { free: '100/min', pro: { rate: '5000/min', perMonth: 1_000_000, concurrency: 20 } },
 *     default: 'free',
 *   }),
 * }
 * ```
 */
export function plans<const PlanName extends string>(
  definition: PlansDefinition<PlanName>,
): LimitGroup {
  return limitGroup('plans', (name) => limitsOfPlans(name, definition, METER_SCRIPTS))
}

/**
 * Returns quotas of calendar days and months, rates, and a limit of requests in flight, which are the
 * same for every caller, for the policy's `limits`.
 *
 * @example
 * ```ts
 * limits: { fair: quotas({ perDay: 10_000, concurrency: 10, by: 'subject' }) }
 * ```
 */
export function quotas(definition: QuotasDefinition): LimitGroup {
  return limitGroup('quotas', (name) => limitsOfQuotas(name, definition, METER_SCRIPTS))
}
