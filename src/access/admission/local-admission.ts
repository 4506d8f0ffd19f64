/** Admission without a call: from the isolate's view of revocations and its leased units. */
import { createRevocationFeed, type FeedCursor, type FeedMark } from '../revocation/feed.ts'
import { NOTHING_REVOCABLE } from '../revocation/revocation.ts'
import type { Party } from './keys.ts'
import { createLeaseBook, type LeaseTally } from './lease-book.ts'
import type { LimitRequest, RateLimit } from './limit.ts'
import type { AdmissionFacts, CallerStore } from './store.ts'

/** Counts of local admissions and of renewals; for metrics. */
export interface LocalTally extends LeaseTally {
  /** Requests that were admitted without a call. */
  admitted: number
  /** Renewals that were answered. */
  refreshed: number
  /** Renewals that failed. */
  failed: number
}

export const newLocalTally = (): LocalTally => ({
  admitted: 0,
  granted: 0,
  returned: 0,
  refreshed: 0,
  failed: 0,
})

/** What a call requests for local admission. */
interface LocalCall {
  readonly limits: readonly LimitRequest[]
  /** The cursor of the view when the call was sent. */
  readonly cursor: FeedCursor
  /** The same if the call reads the feed, too. */
  readonly since: FeedCursor | undefined
  readonly sentMs: number
}

/**
 * Creates local admission. It admits a request without a call if two conditions are met: its
 * parties were found clean, and a view younger than the bound contains no later change of their
 * keys; and each limit has leased units for it. Otherwise one call decides everything. The view and
 * the leases are renewed after responses, before they run out, so that frequent callers do not
 * wait.
 */
export function createLocalAdmission({
  store,
  now,
  maxStalenessMs,
  tally = newLocalTally(),
}: {
  readonly store: Pick<CallerStore, 'consult'>
  /** Milliseconds. Only differences count. */
  readonly now: () => number
  /** Greater than 0: the maximum age of the view of revocations. */
  readonly maxStalenessMs: number
  readonly tally?: LocalTally | undefined
}) {
  const feed = createRevocationFeed({ maxStalenessMs })
  const book = createLeaseBook(tally)

  function callAt(sentMs: number, limits: readonly LimitRequest[], readsFeed: boolean): LocalCall {
    const { cursor } = feed
    return { limits, cursor, since: readsFeed ? cursor : undefined, sentMs }
  }

  async function renew(due: readonly LimitRequest[], readsFeed: boolean): Promise<void> {
    const call = callAt(now(), due, readsFeed)
    const { limits, since, sentMs: nowMs } = call
    const query = { revocation: NOTHING_REVOCABLE, bans: [], limits, since, nowMs }
    let facts: AdmissionFacts | undefined
    try {
      facts = await store.consult({ ...query, isRenewal: true })
      tally.refreshed += 1
    } catch {
      // The next request calls the store, and gets the error there.
      tally.failed += 1
    }
    endCall(call, facts)
  }

  /** Applies a reply; undefined: the call failed. Returns the mark for parties that are clean. */
  function endCall(
    { limits, cursor, since, sentMs }: LocalCall,
    facts: AdmissionFacts | undefined,
  ): FeedMark | undefined {
    book.settle(limits, facts?.limits, sentMs)
    if (facts === undefined) return undefined
    if (since !== undefined) return facts.feed && feed.update(facts.feed, sentMs)
    return markOf(cursor)
  }

  /** The view was read before the call was sent: what has changed since is reported later. */
  const markOf = ({ position, mark }: FeedCursor): FeedMark | undefined =>
    position === '' ? undefined : mark

  return {
    /** Admits a request and returns the states of its limits. Undefined: call the store. */
    admit(
      parties: readonly Party[],
      limits: readonly LimitRequest[],
    ): readonly RateLimit[] | undefined {
      const nowMs = now()
      if (!parties.every(({ cleanAt, keys }) => feed.holds(cleanAt, keys, nowMs))) return undefined
      const states = book.spend(limits, nowMs)
      if (states !== undefined) tally.admitted += 1
      return states
    },

    /** Reads the feed now. Never rejects: without an answer, {@link holds} returns false. */
    refresh: () => renew([], true),

    /** Reports whether nothing refuses a caller with these parties, by the view. */
    holds(parties: readonly Party[]): boolean {
      const nowMs = now()
      return parties.every(({ cleanAt, keys }) => feed.holds(cleanAt, keys, nowMs))
    },

    /** Returns the mark for parties that a call which is sent now finds clean. */
    mark: (): FeedMark | undefined => markOf(feed.cursor),

    /** Returns what a call sent now requests in addition. The caller must end the call. */
    beginCall(limits: readonly LimitRequest[]): LocalCall {
      const sentMs = now()
      const readsFeed = feed.needsRefresh(sentMs) || feed.cursor.position === ''
      return callAt(sentMs, book.withLeaseRequests(limits, sentMs), readsFeed)
    },

    endCall,

    /** Returns the work to do after the response, if any. The work never rejects. */
    renewal(limits: readonly LimitRequest[]): (() => Promise<void>) | undefined {
      const nowMs = now()
      const due = book.renewals(limits, nowMs)
      const readsFeed = feed.needsRefresh(nowMs)
      return readsFeed || due.length > 0 ? () => renew(due, readsFeed) : undefined
    },
  }
}
