/** The limits of plans and quotas: one for each window that at least one plan has. */
import type { MeterKind, PlanTable } from '../../access/admission/limit.ts'
import { Misconfigured } from '../../errors.ts'
import type { LimitGroup, NamedLimit } from '../../policy/definition.ts'
import { type Mistake, type MistakeCode, mistakeAt } from '../../problems/mistake.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import type {
  AllowanceDefinition,
  MeteredDefinition,
  PlanBy,
  PlansDefinition,
  QuotasDefinition,
} from './definition.ts'
import { createMeter, type PlansMeter } from './meter.ts'
import { plansSchema, quotasSchema, ratesOf } from './schema.ts'

const DAY_SECONDS = 86_400
/** 30 days: `w` of a monthly quota in `RateLimit-Policy`. The quota itself follows the calendar. */
const MONTH_SECONDS = 30 * DAY_SECONDS
const DEFAULT_SLOT_SECONDS = 30
const DEFAULT_PLAN_BY: readonly PlanBy[] = ['key', 'client', 'tenant', 'claim']
/** The only plan of quotas. */
const ALONE = 'quotas'

/** One limit of an allowance. */
interface Window {
  readonly kind: MeterKind
  readonly windowSeconds: number
}

export function limitsOfPlans(
  name: string,
  definition: PlansDefinition<string>,
  scripts: PlansMeter['scripts'],
): NamedLimit[] {
  parseConfiguration('The policy', plansSchema, definition, ['limits', name])
  const { plans, default: defaultPlan, planBy = DEFAULT_PLAN_BY } = definition
  const allowances = Object.entries(plans).map(
    ([plan, allowance]): [string, AllowanceDefinition] => [
      plan,
      typeof allowance === 'string' ? { rate: allowance } : allowance,
    ],
  )
  if (!Object.hasOwn(plans, defaultPlan))
    throw mistakeIn(
      'unknown_plan',
      [name, 'default'],
      `unknown plan ${defaultPlan}; the plans are ${Object.keys(plans).join(', ')}`,
      { given: defaultPlan, known: Object.keys(plans) },
    )
  return createLimits(name, definition, new Map(allowances), { defaultPlan, planBy }, scripts)
}

export function limitsOfQuotas(
  name: string,
  definition: QuotasDefinition,
  scripts: PlansMeter['scripts'],
): NamedLimit[] {
  parseConfiguration('The policy', quotasSchema, definition, ['limits', name])
  return createLimits(name, definition, new Map([[ALONE, definition]]), undefined, scripts)
}

function createLimits(
  name: string,
  definition: MeteredDefinition,
  allowances: ReadonlyMap<string, AllowanceDefinition>,
  choice: { readonly defaultPlan: string; readonly planBy: readonly PlanBy[] } | undefined,
  scripts: PlansMeter['scripts'],
): NamedLimit[] {
  const { by = 'key', onUnavailable = 'deny', mode, cost = 1, slotSeconds } = definition
  return listWindows([...allowances.values()], slotSeconds).map(([suffix, window]) => {
    const units = new Map(
      [...allowances].map(([plan, allowance]) => [plan, unitsOf(allowance, window)]),
    )
    const limit =
      units.get(choice?.defaultPlan ?? ALONE) ??
      Math.max(...[...units.values()].flatMap((n) => n ?? []))
    const plans: PlanTable | undefined = choice && { units, defaultPlan: choice.defaultPlan }
    const isCounted = window.kind !== 'concurrency'
    for (const [plan, most = cost] of units)
      if (isCounted && cost > most)
        throw mistakeIn(
          'too_big',
          [name, 'cost'],
          `must not exceed the ${most} units of ${choice ? `plan ${plan}` : 'the quota'}`,
        )
    return {
      name: `${name}${suffix}`,
      group: name,
      limit,
      windowSeconds: window.windowSeconds,
      by,
      onUnavailable,
      ...(mode !== undefined && { mode }),
      cost: isCounted ? cost : 1,
      meter: createMeter({
        kind: window.kind,
        plans,
        planBy: choice?.planBy ?? [],
        windowSeconds: window.windowSeconds,
        scripts,
      }),
    }
  })
}

/**
 * Returns the windows of all plans, by the end of their limits' names. Plans with a window of the same
 * length share it, so that a caller keeps its count when its plan changes. The shortest rate has the
 * name of the group.
 */
function listWindows(
  allowances: readonly AllowanceDefinition[],
  slotSeconds = DEFAULT_SLOT_SECONDS,
): [suffix: string, window: Window][] {
  const seconds = new Set(
    allowances.flatMap((each) => ratesOf(each).map(({ windowSeconds }) => windowSeconds)),
  )
  const rates = [...seconds]
    .sort((a, b) => a - b)
    .map((windowSeconds, index): [string, Window] => [
      index === 0 ? '' : `-${windowSeconds}s`,
      { kind: 'rate', windowSeconds },
    ])
  const has = (field: 'perDay' | 'perMonth' | 'concurrency') =>
    allowances.some((each) => each[field] !== undefined)
  if (has('perDay')) rates.push(['-day', { kind: 'day', windowSeconds: DAY_SECONDS }])
  if (has('perMonth')) rates.push(['-month', { kind: 'month', windowSeconds: MONTH_SECONDS }])
  if (has('concurrency'))
    rates.push(['-concurrency', { kind: 'concurrency', windowSeconds: slotSeconds }])
  return rates
}

function unitsOf(
  allowance: AllowanceDefinition,
  { kind, windowSeconds }: Window,
): number | undefined {
  if (kind === 'day') return allowance.perDay
  if (kind === 'month') return allowance.perMonth
  if (kind === 'concurrency') return allowance.concurrency
  return ratesOf(allowance).find((rate) => rate.windowSeconds === windowSeconds)?.limit
}

/** `path` is below `limits`. */
const mistakeIn = (
  code: MistakeCode,
  path: readonly string[],
  what: string,
  names?: Pick<Mistake, 'given' | 'known'>,
) => new Misconfigured('The policy', [mistakeAt(code, ['limits', ...path], what, names)])

/**
 * Returns what the policy's field `limits` contains for plans or quotas. Throws `Misconfigured` if the
 * policy has another limit with the name of one of theirs.
 */
export const limitGroup = (
  feature: 'plans' | 'quotas',
  limitsOf: (name: string) => NamedLimit[],
): LimitGroup => ({
  feature,
  limits(name, all) {
    const limits = limitsOf(name)
    for (const limit of limits)
      if (limit.name !== name && Object.hasOwn(all, limit.name))
        throw mistakeIn('duplicate', [limit.name], `is also a limit of ${name}; rename one of them`)
    return limits
  },
})
