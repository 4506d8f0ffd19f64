/** Admission without asking: what an isolate knows of revocations, and what it holds of limits. */
import type { Party } from './keys.ts'
import { createLeaseBook, type LeaseTally } from './lease-book.ts'
import type { LimitRequest, RateLimit } from './limit.ts'
import { createRevocationFeed, type FeedCursor, type FeedMark } from './revocation-feed.ts'
import type { AdmissionFacts, AdmissionQuery, AdmissionStore } from './store.ts'

/** What was done without a call, and behind answers; for metrics. */
export interface LocalTally extends LeaseTally {
  /** Requests that were admitted without a call. */
  admitted: number
  /** Calls behind answers that were answered. */
  refreshed: number
  /** And those that failed. */
  failed: number
}

export const newLocalTally = (): LocalTally => ({
  admitted: 0,
  granted: 0,
  returned: 0,
  refreshed: 0,
  failed: 0,
})

export interface LocalAdmissionOptions {
  readonly store: Pick<AdmissionStore, 'consult'>
  /** Milliseconds, of which only what has elapsed counts. */
  readonly now: () => number
  /** Above 0: how old what is known of revocations may be. */
  readonly maxStalenessMs: number
  readonly tally?: LocalTally | undefined
}

/** A call that asks about a request, and what is to be told to {@link LocalAdmission} of its answer. */
export interface Asking {
  readonly limits: readonly LimitRequest[]
  readonly since: FeedCursor
  readonly sentMs: number
}

export interface LocalAdmission {
  /** The last known states of the limits of a request that is admitted; undefined: ask. */
  admit(
    parties: readonly Party[],
    limits: readonly LimitRequest[],
  ): readonly RateLimit[] | undefined
  /** What a call that is sent now asks besides. */
  asking(limits: readonly LimitRequest[]): Asking
  /** What it said; undefined: nothing. Returns the mark of what it has found clean. */
  answered(asking: Asking, facts: AdmissionFacts | undefined): FeedMark | undefined
  /** What is to be done behind the answer, if anything. It never rejects. */
  renewal(limits: readonly LimitRequest[]): (() => Promise<void>) | undefined
}

/** Nothing is asked about a caller. */
const NOBODY: Pick<AdmissionQuery, 'revocation' | 'bans' | 'proof'> = {
  revocation: { memory: 'renewal', token: undefined, cutOffs: [], issuedAtSeconds: 0 },
  bans: [],
}

/**
 * Makes it. A request is admitted if what its parties were found to be is known to hold, no longer ago
 * than the bound, and each of its limits holds a unit for it; else one call decides over all of it. What
 * is known and held is renewed behind answers, ahead of need, so that who comes often does not wait.
 */
export function createLocalAdmission({
  store,
  now,
  maxStalenessMs,
  tally = newLocalTally(),
}: LocalAdmissionOptions): LocalAdmission {
  const feed = createRevocationFeed({ maxStalenessMs })
  const book = createLeaseBook(tally)

  async function renew(limits: readonly LimitRequest[]): Promise<void> {
    const asking = { limits, since: feed.cursor, sentMs: now() }
    const { since, sentMs: nowMs } = asking
    let facts: AdmissionFacts | undefined
    try {
      facts = await store.consult({ ...NOBODY, limits, since, nowMs, isRenewal: true })
      tally.refreshed += 1
    } catch {
      // Whoever comes next asks, and is told.
      tally.failed += 1
    }
    answered(asking, facts)
  }

  function answered({ limits, since, sentMs }: Asking, facts: AdmissionFacts | undefined) {
    book.settle(limits, facts?.limits, sentMs)
    const reply = facts?.feed ?? { since, position: '', changed: undefined }
    return feed.update(reply, sentMs)
  }

  return {
    admit(parties, limits) {
      const nowMs = now()
      if (!parties.every(({ cleanAt, keys }) => feed.holds(cleanAt, keys, nowMs))) return undefined
      const states = book.spend(limits, nowMs)
      if (states === undefined) return undefined
      tally.admitted += 1
      return states
    },

    asking(limits) {
      const sentMs = now()
      return { limits: book.asking(limits, sentMs), since: feed.cursor, sentMs }
    },

    answered,

    renewal(limits) {
      const nowMs = now()
      const due = book.renewals(limits, nowMs)
      const isDue = feed.needsRefresh(nowMs) || due.length > 0
      return isDue ? () => renew(due) : undefined
    },
  }
}
