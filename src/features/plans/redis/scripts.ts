/** The calls of the scripts that count metered limits, and the slots that they take. */
import type { LimitRequest, LimitRule, RateLimit, Slot } from '../../../access/admission/limit.ts'
import { admitCommand, readFacts } from '../../../access/admission/redis/admit-script.ts'
import { isExact } from '../../../access/admission/redis/exact-limit.ts'
import { counterName } from '../../../access/admission/redis/limit-overrides.ts'
import type { MeterScripts } from '../../../access/admission/redis/meter.ts'
import { Unavailable } from '../../../errors.ts'
import type { RedisCommand, RedisConnection } from '../../../redis/connection.ts'
import type { RedisKeys } from '../../../redis/keys.ts'
import { createScript, evalCommand } from '../../../redis/script.ts'
import type { PlansMeter } from '../meter.ts'
import {
  ADMIT_METERED_REFERENCE_SCRIPT,
  ADMIT_METERED_SCRIPT,
  REFUND_QUOTA_SCRIPT,
  RENEW_SLOT_SCRIPT,
} from './scripts.generated.ts'

/** In the command of `admit.lua`: the arguments before the limits, and those of each limit. */
const HEAD_ARGUMENTS = 4
const LIMIT_ARGUMENTS = 4
/** In the command: the number of keys, and the first key. */
const KEY_COUNT = 2
const FIRST_KEY = 3

export const METER_SCRIPTS: MeterScripts = {
  script: createScript(ADMIT_METERED_SCRIPT),

  commandOf(name, keys, query) {
    const command = [...admitCommand(name, keys, query)]
    const limits = query.limits.filter(({ rule }) => isExact(rule))
    const keyCount = Number(command[KEY_COUNT])
    const first = FIRST_KEY + keyCount + HEAD_ARGUMENTS
    const records: string[] = []
    for (const [index, request] of limits.entries()) {
      const at = first + index * LIMIT_ARGUMENTS
      const sources = formatSources(request, keys, records)
      command.splice(at, 3, ...formatValues(request, sources, command.slice(at, at + 3)))
    }
    command.splice(FIRST_KEY + keyCount, 0, ...records)
    command[KEY_COUNT] = keyCount + records.length
    command.push(records.length)
    return command
  },

  factsOf(result, query, nowMs, redis) {
    const facts = readFacts(result, query, nowMs)
    const limits = query.limits.map((request, index) =>
      withSlot(facts.limits[index], request, redis),
    )
    return { ...facts, limits }
  },

  resolution: createScript(ADMIT_METERED_REFERENCE_SCRIPT, { keys: 'derived' }),

  argumentsOf(limit, exact) {
    const { planBy = [] } = meterOf(limit.rule) ?? {}
    // The script knows the principal, and builds the keys of its records.
    const stored = planBy.filter((by) => by !== 'claim')
    return [...formatValues(limit, stored, exact.slice(0, 3)), ...exact.slice(3)]
  },

  refundCommand(keys, { rule, key }, takenMicros) {
    const { kind } = meterOf(rule) ?? {}
    if (kind !== 'day' && kind !== 'month') return undefined
    const values = [endOf(kind, Number(takenMicros) / 1000), rule.cost ?? 1]
    return evalCommand(REFUND_QUOTA_SCRIPT, [counterName(keys, key)], values)
  },

  stateOf: ({ key, state }, { slot }, redis) => withSlot(state, { key, slot }, redis),
}

/** Returns the second in which the day or month of a time ends (UTC), as `meters.lua` does. */
function endOf(period: 'day' | 'month', ms: number): number {
  const at = new Date(ms)
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()]
  const end =
    period === 'day' ? Date.UTC(year, month, at.getUTCDate() + 1) : Date.UTC(year, month + 1)
  return end / 1000
}

const meterOf = ({ meter }: LimitRule) => meter as PlansMeter | undefined

/** Returns the units, the window and the cost of a limit, as `meters.lua` reads them. */
function formatValues(
  { rule, slot }: Pick<LimitRequest, 'rule' | 'slot'>,
  sources: readonly string[],
  exact: readonly (string | number)[],
): readonly (string | number)[] {
  const { windowSeconds, cost = 1 } = rule
  const meter = meterOf(rule)
  if (meter === undefined) return exact
  const { kind, plans } = meter
  const units =
    plans === undefined
      ? rule.limit
      : `${[plans.defaultPlan, ...sources].join(' ')}${formatTable(plans.units)}`
  if (kind === 'concurrency') return [units, 'slots', `${slot} ${windowSeconds * 1_000_000}`]
  return [units, kind === 'rate' ? windowSeconds : kind, cost]
}

const tables = new WeakMap<object, string>()

/** Formats the units of each plan: `;free=100;pro=;`. */
function formatTable(units: ReadonlyMap<string, number | undefined>): string {
  let table = tables.get(units)
  if (table === undefined) {
    table = `;${[...units].map(([plan, limit = '']) => `${plan}=${limit};`).join('')}`
    tables.set(units, table)
  }
  return table
}

/**
 * Returns the sources of the caller's plan as `declared-plans.lua` reads them: places in `records`, to which
 * missing keys are added, and literal plans, which begin with `=`.
 */
function formatSources(
  { planSources = [] }: LimitRequest,
  keys: RedisKeys,
  records: string[],
): string[] {
  return planSources.map((source) => {
    if (source[0] === '=') return source
    const key = keys.plan + source
    if (!records.includes(key)) records.push(key)
    return String(records.indexOf(key) + 1)
  })
}

/** Adds the slot to the state of a limit, if the request has taken one. */
function withSlot<State extends RateLimit | Unavailable | undefined>(
  state: State,
  { key, slot }: Pick<LimitRequest, 'key' | 'slot'>,
  redis: RedisConnection,
): State | RateLimit {
  if (slot === undefined || state === undefined || state instanceof Unavailable) return state
  if (!state.admitted || state.limit === 0) return state
  const holdMs = state.rule.windowSeconds * 1000
  return { ...state, slot: createSlot(redis, counterName(redis.keys, key), slot, holdMs) }
}

/** Creates a slot: a member of the sorted set `key`, scored by the end of its hold in microseconds. */
function createSlot(redis: RedisConnection, key: string, member: string, holdMs: number): Slot {
  /** The slot becomes free at the end of its hold anyway. */
  const attempt = async (command: RedisCommand) => {
    await redis.send([command]).catch(() => undefined)
  }
  return {
    renewMs: holdMs / 3,
    renew: () => attempt(evalCommand(RENEW_SLOT_SCRIPT, [key], [member, holdMs])),
    release: () => attempt(['ZREM', key, member]),
  }
}
