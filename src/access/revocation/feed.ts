/**
 * Caches in the isolate which revocations, revocation cutoffs and bans have changed. A caller that
 * was found clean is then not checked in Redis for every request. Pure: no I/O, no clock. See
 * docs/decisions/0038.
 */
import { isWithin, STEP_MS } from '../../isolate/period.ts'

/** Entries that the store keeps: about 1.4 MB. An isolate further behind discards its state. */
export const MAX_FEED_ENTRIES = 10_000
/** The store removes an entry older than this, in seconds. No isolate in use is this far behind. */
export const FEED_RETENTION_SECONDS = 3_600
/** Life of a feed without writes. After it, every isolate checks every caller once in Redis. */
export const FEED_TTL_SECONDS = 86_400
/** Changes in one reply, about 60 KB. */
export const MAX_FEED_CHANGES = 500

/** The state of a view when a call is sent. */
export interface FeedCursor {
  /** As the store reported it, and only the store interprets it. Empty: no position yet. */
  readonly position: string
  readonly mark: FeedMark
}

/**
 * A moment of one view. A caller that is clean at a mark (neither revoked nor banned) stays clean
 * until one of its keys changes.
 */
export type FeedMark = number

export interface FeedReply {
  /** The cursor that the call carried. */
  readonly since: FeedCursor
  /** Empty if the feed cannot be read. */
  readonly position: string
  /**
   * The storage keys that changed since the cursor. Undefined if that is unknown: the feed was lost,
   * went back or was trimmed, or has more changes than fit in one reply.
   */
  readonly changed: readonly string[] | undefined
}

/** At most 2 MB. */
const DEFAULT_MAX_ENTRIES = 4_096
/** Fractions of `maxStalenessMs`. */
const REFRESH_AT = 1 / 2
const RETRY_AFTER = 1 / 8

const NEVER = Number.NEGATIVE_INFINITY

export type RevocationFeed = ReturnType<typeof createRevocationFeed>

/**
 * Creates a view, which is valid for `maxStalenessMs`. The age of its state starts when the last
 * call with a usable reply was SENT. The view includes every change made before that moment. A
 * request that is admitted by the view is therefore admitted at most `maxStalenessMs` after a
 * change, by this clock. If the clock reads more than 5 s less than at the last request, it was set back, and
 * the view is not valid until the next reply. A smaller step lengthens the bound by the step. Every
 * `nowMs` and `sentMs` comes from the same clock, in milliseconds.
 *
 * Several calls may be in progress. Each reply reports the changes since its own cursor, and all of
 * them are applied, in any order. A mark is from the moment when its call was sent, never later. A
 * key that changes while the call is in progress is therefore queried again. If the feed was lost
 * or went back, every earlier mark is invalid.
 */
export function createRevocationFeed({
  maxStalenessMs,
  maxEntries = DEFAULT_MAX_ENTRIES,
}: {
  readonly maxStalenessMs: number
  readonly maxEntries?: number
}) {
  /** The mark at which each key last changed, the earliest first. */
  const changed = new Map<string, FeedMark>()
  let now: FeedMark = 0
  /** Marks below this value are invalid: the changes since then are not complete. */
  let floor: FeedMark = 0
  let cursor: FeedCursor = { position: '', mark: now }
  let knownSinceMs = NEVER
  /** The time of the last request. An earlier one reveals that the clock was set back. */
  let usedMs = 0
  let triedMs = NEVER

  function voidAll(position: string): void {
    changed.clear()
    now += 1
    floor = now
    cursor = { position, mark: now }
  }

  function apply(keys: readonly string[]): void {
    now += 1
    for (const key of keys) {
      // Delete the key first, so that the insertion order is the order of the marks.
      changed.delete(key)
      changed.set(key, now)
    }
    for (const [key, mark] of changed) {
      if (changed.size <= maxEntries) break
      changed.delete(key)
      floor = mark
    }
    // The replies to calls with this cursor could no longer be applied.
    if (cursor.mark < floor) voidAll('')
  }

  return {
    /** The cursor for the next call. Read it when the call is sent, at the same time as `sentMs`. */
    get cursor(): FeedCursor {
      return cursor
    },

    /**
     * Reports whether a caller with these keys that was clean at `mark` is still clean. False if
     * this is not certain: the caller must then query the store.
     */
    holds(mark: FeedMark | undefined, keys: readonly string[], nowMs: number): boolean {
      if (nowMs < usedMs - STEP_MS) knownSinceMs = NEVER
      usedMs = nowMs
      if (mark === undefined || mark < floor || !isWithin(knownSinceMs, maxStalenessMs, nowMs, 0))
        return false
      return mark === now || keys.every((key) => (changed.get(key) ?? mark) <= mark)
    },

    /**
     * Applies a reply. Returns the mark of the callers that the same call found clean, or undefined
     * if the next request must query the store again.
     */
    update({ since, position, changed: keys }: FeedReply, sentMs: number): FeedMark | undefined {
      if (position === '') return undefined
      if (position === cursor.position) {
        knownSinceMs = sentMs
        return cursor.mark
      }
      // This call was sent before the last reset, so its reply does not describe the present feed.
      if (since.mark < floor) return undefined
      knownSinceMs = sentMs
      if (keys === undefined) {
        voidAll(position)
        return cursor.mark
      }
      if (since === cursor) cursor = { position, mark: now + 1 }
      apply(keys)
      return since.mark
    },

    /**
     * Reports whether to read the feed now. The caller that gets true must read it. Further calls
     * return false for an eighth of the bound; after that, a failed read is tried again.
     */
    needsRefresh(nowMs: number): boolean {
      const isDue = (thenMs: number, part: number) =>
        !isWithin(thenMs, maxStalenessMs * part, nowMs, 0)
      if (!isDue(knownSinceMs, REFRESH_AT) || !isDue(triedMs, RETRY_AFTER)) return false
      triedMs = nowMs
      return true
    },
  }
}
