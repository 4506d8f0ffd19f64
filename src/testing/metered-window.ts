/** Windows of metered limits in memory. `meters.lua` has those in Redis. */
import type { LimitRequest, LimitRule, RateLimit, Slot } from '../access/admission/limit.ts'
import { createExactWindow, type ExactWindow } from './exact-window.ts'

/** A window whose size is that of the caller's plan. */
export interface SizedWindow extends Omit<ExactWindow, 'take'> {
  resize(limit: number): void
  /** Takes a request that fits. `slot` names it, for a window of requests in flight. */
  take(nowMicros: number, cost: number, slot: string | undefined): void
  release(slot: string): void
}

export function createSizedWindow({ limit, windowSeconds, meter }: LimitRule): SizedWindow {
  if (meter?.kind === 'concurrency') return createSlots(limit, windowSeconds)
  if (meter?.kind === 'day' || meter?.kind === 'month') return createQuota(limit, meter.kind)
  return { ...createExactWindow(limit, windowSeconds), release() {} }
}

/** Returns when the calendar day or month ends (UTC), in microseconds since the epoch. */
export function endOfPeriod(nowMicros: number, period: 'day' | 'month'): number {
  const now = new Date(nowMicros / 1000)
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()]
  const endMs = period === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1)
  return endMs * 1000
}

function createQuota(first: number, period: 'day' | 'month'): SizedWindow {
  let limit = first
  let taken = 0
  let untilMicros = 0
  function advance(nowMicros: number): void {
    if (nowMicros < untilMicros) return
    taken = 0
    untilMicros = endOfPeriod(nowMicros, period)
  }
  return {
    resize(present) {
      limit = present
    },
    fits(nowMicros, cost) {
      advance(nowMicros)
      return taken + cost <= limit
    },
    take(_nowMicros, cost) {
      taken += cost
    },
    state(nowMicros) {
      advance(nowMicros)
      const waitMs = Math.ceil((untilMicros - nowMicros) / 1000)
      return { remaining: Math.max(0, limit - taken), waitMs }
    },
    release() {},
  }
}

function createSlots(first: number, holdSeconds: number): SizedWindow {
  let limit = first
  /** The end of the hold of each slot, in microseconds since the epoch. */
  const slots = new Map<string, number>()
  function inFlight(nowMicros: number): number {
    for (const [slot, untilMicros] of slots) if (untilMicros <= nowMicros) slots.delete(slot)
    return slots.size
  }
  return {
    resize(present) {
      limit = present
    },
    fits: (nowMicros) => inFlight(nowMicros) < limit,
    take(nowMicros, _cost, slot = '') {
      slots.set(slot, nowMicros + holdSeconds * 1_000_000)
    },
    state: (nowMicros) => ({ remaining: Math.max(0, limit - inFlight(nowMicros)), waitMs: 0 }),
    release: (slot) => void slots.delete(slot),
  }
}

/**
 * Returns the units of a request's limit: those of the caller's plan, which is named, or of every caller.
 * Undefined units: the plan has no such limit. `planAt` returns the stored plan of a party.
 */
export function findUnits(
  { rule, planSources = [] }: LimitRequest,
  planAt: (source: string) => string | undefined,
): { readonly units: number | undefined; readonly plan?: string } {
  const table = rule.meter?.plans
  if (table === undefined) return { units: rule.limit }
  const plans = planSources.map((one) => (one.startsWith('=') ? one.slice(1) : planAt(one)))
  const plan = plans.find((one) => one !== undefined && table.units.has(one)) ?? table.defaultPlan
  return { units: table.units.get(plan), plan }
}

/** The state of a limit that the caller's plan does not have. */
export const unlimited = (rule: LimitRule): RateLimit => ({
  rule,
  limit: 0,
  remaining: 0,
  resetMs: 0,
  admitted: true,
})

/** Returns the slot of a request in flight. It never has to be renewed: the clock does not run. */
export const slotIn = (window: SizedWindow, name: string): Slot => ({
  renewMs: 2 ** 31 - 1,
  async renew() {},
  async release() {
    window.release(name)
  },
})
