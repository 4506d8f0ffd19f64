/**
 * Single flight for relation checks: identical queries share one call to the policy decision point.
 */

import { Unavailable } from '../errors.ts'
import { failureFor } from '../isolate/shared-call.ts'
import { sleep } from '../isolate/timers.ts'
import type { PolicyDecisionPoint, RelationAnswer, RelationQuery } from './decision-point.ts'
import { queryKey } from './rule.ts'

export interface CoalescedDecisionPointOptions {
  readonly decisionPoint: PolicyDecisionPoint
  /**
   * How long a request waits for the call of another request before it makes its own: one deadline,
   * in milliseconds.
   */
  readonly maxWaitMs: number
  /** Returns the current time in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/** A call that has started, or a call that waiting requests are about to start. */
interface Call {
  /** Undefined until a request starts the call. */
  beganMs: number | undefined
  outcome: RelationAnswer | Unavailable | 'abandoned' | undefined
  /** The call for requests that arrived after this one started. */
  next: Call | undefined
}

const newCall = (): Call => ({ beganMs: undefined, outcome: undefined, next: undefined })

/**
 * Shortest and longest interval between two polls. Between them, the interval is an eighth of the
 * time that the request has waited.
 */
const MIN_POLL_MS = 4
const MAX_POLL_MS = 50
/**
 * A call is dropped this long after its start, if the platform ended its request before the call
 * finished.
 */
const SWEEP_AFTER_MS = 60_000

/**
 * Wraps a policy decision point. A call serves only the requests that arrived before it started. A
 * request that arrives during a call waits for its end, and shares the next call with all requests
 * that arrived meanwhile. So no answer is older than its query, and identical queries run one at a
 * time. The cost is a wait of up to one extra call.
 *
 * A failure is shared with all requests that wait at that moment, because a failure is not a
 * decision.
 *
 * On Workers a request must not await a promise of another request, so waiting requests poll for
 * the result. If the request that leads a call is cancelled, the others make their own calls after
 * `maxWaitMs`.
 */
export function coalescedDecisionPoint({
  decisionPoint,
  maxWaitMs,
  now = Date.now,
}: CoalescedDecisionPointOptions): PolicyDecisionPoint {
  /** The latest started call of each query, while it runs or while requests wait behind it. */
  const calls = new Map<string, Call>()
  let sweptAtMs = now()

  function sweep(nowMs: number): void {
    if (nowMs - sweptAtMs < SWEEP_AFTER_MS) return
    sweptAtMs = nowMs
    for (const [key, { beganMs = 0 }] of calls)
      if (nowMs - beganMs > SWEEP_AFTER_MS) calls.delete(key)
  }

  async function lead(key: string, query: RelationQuery, call: Call): Promise<RelationAnswer> {
    const nowMs = now()
    sweep(nowMs)
    call.beganMs = nowMs
    calls.set(key, call)
    try {
      const answer = await decisionPoint.check(query)
      call.outcome = answer
      return answer
    } catch (error) {
      call.outcome = error instanceof Unavailable ? error : 'abandoned'
      throw error
    } finally {
      const isOver = call.next === undefined || call.outcome instanceof Unavailable
      if (isOver && calls.get(key) === call) calls.delete(key)
    }
  }

  return {
    async check(query) {
      const key = keyOf(query)
      const before = calls.get(key)
      if (before === undefined) return lead(key, query, newCall())
      before.next ??= newCall()
      const mine = before.next
      const sinceMs = now()
      for (;;) {
        const { outcome, beganMs } = mine
        const waitedMs = now() - (beganMs ?? sinceMs)
        if (outcome instanceof Unavailable) throw failureFor(outcome)
        if (outcome === 'abandoned') return decisionPoint.check(query)
        if (outcome !== undefined) return outcome
        if (beganMs === undefined) {
          if (before.outcome instanceof Unavailable) throw failureFor(before.outcome)
          if (before.outcome !== undefined || waitedMs > maxWaitMs) return lead(key, query, mine)
        } else if (waitedMs > maxWaitMs) return decisionPoint.check(query)
        await sleep(Math.min(Math.max((now() - sinceMs) / 8, MIN_POLL_MS), MAX_POLL_MS))
      }
    },
  }
}

/**
 * Returns the key of a query. Two queries have the same key only if tenant, tuples and `atLeast`
 * are equal.
 */
const keyOf = (query: RelationQuery) => `${query.atLeast ?? 0} ${queryKey(query)}`
