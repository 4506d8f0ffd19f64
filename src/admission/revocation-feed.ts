/**
 * What an isolate knows of changes to revocations, cut-offs and bans, so that it need not ask about
 * the same caller with every request. Pure: no I/O, no clock. See docs/decisions/0038.
 */

/** Where a view stood when a call was sent; the call takes it along, and its reply comes with it. */
export interface FeedCursor {
  /** As the store told it, and for the store alone to read; empty: nowhere yet. */
  readonly position: string
  /** The moment of the view. */
  readonly mark: FeedMark
}

/** A moment of one view. What was found clean at it stays so until one of its keys has changed. */
export type FeedMark = number

/** What the store said, before or in the same step as it read whatever else the call asked. */
export interface FeedReply {
  /** The cursor that the call took along. */
  readonly since: FeedCursor
  /** Where the feed stands; empty: it cannot be read, and nobody can tell. */
  readonly position: string
  /**
   * The storage keys that have changed between the two; undefined: nobody can tell, because the feed
   * was lost, went back, was trimmed, or has more than fit in an answer.
   */
  readonly changed: readonly string[] | undefined
}

export interface RevocationFeedOptions {
  /** Above 0: how old knowledge may be, milliseconds. */
  readonly maxStalenessMs: number
  /** Changed keys that are kept. Default 4,096: 2 MB at the very most. */
  readonly maxEntries?: number
}

/** The view of one isolate. Every `nowMs` and `sentMs` is of the same clock, milliseconds. */
export interface RevocationFeed {
  /** To be read when a call is sent, at the same time as `sentMs`. */
  readonly cursor: FeedCursor
  /**
   * Whether what was found clean at `mark` is still known to be: what the view knows is younger than the
   * bound, and none of `keys` has changed since. False wherever it cannot tell: then ask.
   */
  holds(mark: FeedMark | undefined, keys: readonly string[], nowMs: number): boolean
  /**
   * Takes a reply in. Returns the mark of whatever the same call has found clean; undefined: it has
   * none, and the next request asks again. `sentMs` is when the call was SENT, not when it answered.
   */
  update(reply: FeedReply, sentMs: number): FeedMark | undefined
  /**
   * Whether to refresh now, behind an answer: half of the bound has passed. Who is told so does it;
   * nobody else is told for an eighth of the bound, so that one that fails is tried again.
   */
  needsRefresh(nowMs: number): boolean
}

const DEFAULT_MAX_ENTRIES = 4_096
/** Parts of the bound. */
const REFRESH_AT = 1 / 2
const RETRY_AFTER = 1 / 8

/**
 * Makes a view. The age of what it knows is counted from when the last call that told it something was
 * sent, so a change that was made before then is known: whoever is admitted by it is admitted at most
 * `maxStalenessMs` after a change, by this clock. A clock that is set back by some time lets that much
 * more pass, until the next reply.
 *
 * Of several calls under way each tells what has changed since its own cursor. All of it is taken in,
 * whatever came first; a mark is of when its call was sent, never of later, so a key that changed
 * meanwhile is asked about again rather than believed. A feed that was lost, or went back, voids
 * every mark of before.
 */
export function createRevocationFeed({
  maxStalenessMs,
  maxEntries = DEFAULT_MAX_ENTRIES,
}: RevocationFeedOptions): RevocationFeed {
  /** The mark at which a key last changed, the earliest first. */
  const changed = new Map<string, FeedMark>()
  let now: FeedMark = 0
  /** Marks below this are void: it is not known any more what has changed since. */
  let floor: FeedMark = 0
  let cursor: FeedCursor = { position: '', mark: now }
  let knownSinceMs = Number.NEGATIVE_INFINITY
  let triedMs = Number.NEGATIVE_INFINITY

  function voidAll(position: string): void {
    changed.clear()
    now += 1
    floor = now
    cursor = { position, mark: now }
  }

  function takeIn(keys: readonly string[]): void {
    now += 1
    for (const key of keys) {
      // Anew, so that the order is that of the marks.
      changed.delete(key)
      changed.set(key, now)
    }
    for (const [key, mark] of changed) {
      if (changed.size <= maxEntries) break
      changed.delete(key)
      floor = mark
    }
    // Calls that took this cursor along could say nothing any more.
    if (cursor.mark < floor) voidAll('')
  }

  return {
    get cursor() {
      return cursor
    },

    holds(mark, keys, nowMs) {
      const ageMs = nowMs - knownSinceMs
      if (mark === undefined || mark < floor || !(ageMs >= 0 && ageMs < maxStalenessMs))
        return false
      return mark === now || keys.every((key) => (changed.get(key) ?? mark) <= mark)
    },

    update({ since, position, changed: keys }, sentMs) {
      if (position === '') return undefined
      if (position === cursor.position) {
        knownSinceMs = sentMs
        return cursor.mark
      }
      // Of before everything was forgotten: it says nothing about the present feed.
      if (since.mark < floor) return undefined
      knownSinceMs = sentMs
      if (keys === undefined) {
        voidAll(position)
        return cursor.mark
      }
      if (since === cursor) cursor = { position, mark: now + 1 }
      takeIn(keys)
      return since.mark
    },

    needsRefresh(nowMs) {
      const isDue = (thenMs: number, part: number) => {
        const elapsedMs = nowMs - thenMs
        return elapsedMs < 0 || elapsedMs >= maxStalenessMs * part
      }
      if (!isDue(knownSinceMs, REFRESH_AT) || !isDue(triedMs, RETRY_AFTER)) return false
      triedMs = nowMs
      return true
    },
  }
}
