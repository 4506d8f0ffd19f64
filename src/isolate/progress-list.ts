/**
 * Lists of what is in progress, oldest first. Entries leave in constant time.
 *
 * A `Set` with thousands of additions and deletions a second replaces its table often. A dead table in
 * the old generation of the heap keeps younger entries alive until the next full collection, with all that
 * they refer to. That doubles the memory of a process. An entry that has left this list refers to no other one.
 */

/** What the list adds to its entries. */
export interface ProgressEntry<Entry> {
  older?: Entry | undefined
  newer?: Entry | undefined
}

export interface ProgressList<Entry extends ProgressEntry<Entry>> {
  readonly oldest: Entry | undefined
  readonly newest: Entry | undefined
  add(entry: Entry): void
  /** Does nothing if the entry is not in the list. */
  remove(entry: Entry): void
}

export function createProgressList<Entry extends ProgressEntry<Entry>>(): ProgressList<Entry> {
  let oldest: Entry | undefined
  let newest: Entry | undefined
  return {
    get oldest() {
      return oldest
    },
    get newest() {
      return newest
    },
    add(entry) {
      entry.older = newest
      if (newest === undefined) oldest = entry
      else newest.newer = entry
      newest = entry
    },
    remove(entry) {
      const { older, newer } = entry
      if (older !== undefined) older.newer = newer
      else if (oldest === entry) oldest = newer
      else return
      if (newer !== undefined) newer.older = older
      else newest = older
      entry.older = undefined
      entry.newer = undefined
    },
  }
}
