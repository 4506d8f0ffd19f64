/** Asks an authority once for many requests that ask the same at once. */
import { failureFor } from '../coalescing/shared-call.ts'
import { Unavailable } from '../errors.ts'
import { sleep } from '../timers.ts'
import type { RelationAnswer, RelationAuthority, RelationQuery } from './authority.ts'
import { queryKey } from './rule.ts'

export interface CoalescedAuthorityOptions {
  readonly authority: RelationAuthority
  /** How long a request waits for the call of another before it asks for itself: one deadline. */
  readonly maxWaitMs: number
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/** A call that somebody has begun, or that those who wait in it are about to begin. */
interface Call {
  /** Undefined: nobody has begun it. */
  beganMs: number | undefined
  outcome: RelationAnswer | Unavailable | 'abandoned' | undefined
  /** For those who came after it began. */
  next: Call | undefined
}

const newCall = (): Call => ({ beganMs: undefined, outcome: undefined, next: undefined })

/** How soon a request looks again; later, an eighth of its wait. */
const MIN_POLL_MS = 4
const MAX_POLL_MS = 50
/** Calls of requests that the platform ended without a word are forgotten this much later. */
const SWEEP_AFTER_MS = 60_000

/**
 * Wraps an authority. A call serves those alone who had come when it began: who comes while it is
 * under way waits for its end, and shares the next one with all who came meanwhile. So no answer is
 * older than the question, and of many that are the same at most one is under way, at the cost of
 * waiting for up to one call more. A failure is shared with all who wait at that moment: that nobody
 * can tell is no decision.
 *
 * On Workers a request must not await what another one has begun, so those who wait look again and
 * again for data. Where the one who asks has died with its request, the others ask after `maxWaitMs`.
 */
export function coalescedAuthority({
  authority,
  maxWaitMs,
  now = Date.now,
}: CoalescedAuthorityOptions): RelationAuthority {
  /** The newest call of each question that has begun; while it runs, or others wait behind it. */
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
      const answer = await authority.check(query)
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
        if (outcome === 'abandoned') return authority.check(query)
        if (outcome !== undefined) return outcome
        if (beganMs === undefined) {
          if (before.outcome instanceof Unavailable) throw failureFor(before.outcome)
          if (before.outcome !== undefined || waitedMs > maxWaitMs) return lead(key, query, mine)
        } else if (waitedMs > maxWaitMs) return authority.check(query)
        await sleep(Math.min(Math.max((now() - sinceMs) / 8, MIN_POLL_MS), MAX_POLL_MS))
      }
    },
  }
}

/** Equal text is an equal question, of the same tenant and as fresh. */
const keyOf = (query: RelationQuery) => `${query.atLeast ?? 0} ${queryKey(query)}`
