import { Unavailable } from '../../errors.ts'
import { copyOfFailure, createSingleFlight, type Flight } from '../../isolate/single-flight.ts'
import type { PolicyDecisionPoint, RelationAnswer, RelationQuery } from './decision-point.ts'
import { queryKey } from './rule.ts'

export interface CoalescedDecisionPointOptions {
  readonly decisionPoint: PolicyDecisionPoint
  /**
   * If the platform ends the request that makes a call, another request makes it after this time:
   * the deadline of a call, in milliseconds.
   */
  readonly maxWaitMs: number
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/** A decision comes soon, so requests poll often. */
const MIN_POLL_MS = 4
const MAX_POLL_MS = 50

type Outcome = RelationAnswer | Unavailable

/**
 * Lets identical queries share a call to the policy decision point. A call serves only the requests that arrived before it started. A
 * request that arrives during a call waits for its end, and shares the next call with all requests
 * that arrived meanwhile. So no answer is older than its query, and identical queries run one at a
 * time. The cost is a wait of up to one extra call.
 *
 * A failure is shared with all requests that wait at that moment: it is not a decision.
 */
export function coalescedDecisionPoint({
  decisionPoint,
  maxWaitMs,
  now = () => Date.now(),
}: CoalescedDecisionPointOptions): PolicyDecisionPoint {
  const calls = createSingleFlight<Outcome>({
    now,
    leaseMs: maxWaitMs,
    minPollMs: MIN_POLL_MS,
    maxPollMs: MAX_POLL_MS,
  })

  async function lead(query: RelationQuery, call: Flight<Outcome>): Promise<RelationAnswer> {
    try {
      const answer = await decisionPoint.check(query)
      // Requests that arrive before the next call begins share it with those that wait.
      call.end(answer, call.isFollowed)
      return answer
    } catch (error) {
      call.end(error instanceof Unavailable ? error : undefined)
      throw error
    }
  }

  return {
    async check(query) {
      const key = keyOf(query)
      const running = calls.latest(key)
      if (running === undefined) return lead(query, calls.begin(key))
      const first = await calls.follow(key, running)
      if (first.outcome instanceof Unavailable) throw copyOfFailure(first.outcome)
      if (first.outcome === undefined) return lead(query, first.flight)
      // It has replaced the running call, so it began after this query.
      if (first.flight !== running) return first.outcome
      const next = running.successor
      if (next === undefined) return lead(query, calls.begin(key, running))
      const second = await calls.follow(key, next)
      if (second.outcome instanceof Unavailable) throw copyOfFailure(second.outcome)
      return second.outcome ?? lead(query, second.flight)
    },
  }
}

const keyOf = (query: RelationQuery) => `${query.atLeast ?? 0} ${queryKey(query)}`
