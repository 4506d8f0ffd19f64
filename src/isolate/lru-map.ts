/** A map of bounded size. When it is full, the entries that were used least recently make room. */

export interface LruOptions<Key, Value> {
  /** The number of entries. Default: no bound. */
  readonly max?: number
  /** The sum of the sizes of all entries. Default: no bound. */
  readonly maxSize?: number
  /** Returns the size of an entry. Default: 1. An entry larger than `maxSize` is not stored. */
  readonly sizeCalculation?: (value: Value, key: Key) => number
  /** Called for each value that leaves the map: for lack of room, for another value, or by `delete`. */
  readonly dispose?: (value: Value, key: Key, reason: 'evict' | 'set' | 'delete') => void
}

/**
 * A link of the list from the least to the most recently used entry. A map alone has this order too, but finds
 * its first entry slowly after many deletions.
 */
interface Entry<Key, Value> {
  readonly key: Key
  readonly value: Value
  readonly size: number
  older: Entry<Key, Value> | undefined
  newer: Entry<Key, Value> | undefined
}

export function createLruMap<Key, Value>({
  max = Number.POSITIVE_INFINITY,
  maxSize = Number.POSITIVE_INFINITY,
  sizeCalculation = () => 1,
  dispose,
}: LruOptions<Key, Value>) {
  type Link = Entry<Key, Value>
  const entries = new Map<Key, Link>()
  let oldest: Link | undefined
  let newest: Link | undefined
  let size = 0

  function unlink({ older, newer }: Link): void {
    if (older === undefined) oldest = newer
    else older.newer = newer
    if (newer === undefined) newest = older
    else newer.older = older
  }

  function append(entry: Link): void {
    entry.older = newest
    entry.newer = undefined
    if (newest === undefined) oldest = entry
    else newest.newer = entry
    newest = entry
  }

  function remove(entry: Link, reason?: 'evict' | 'set' | 'delete'): void {
    entries.delete(entry.key)
    unlink(entry)
    size -= entry.size
    if (reason !== undefined) dispose?.(entry.value, entry.key, reason)
  }

  return {
    /** Returns a value, which is then the most recently used one. */
    get(key: Key): Value | undefined {
      const entry = entries.get(key)
      if (entry !== undefined && entry !== newest) {
        unlink(entry)
        append(entry)
      }
      return entry?.value
    },
    /** Returns a value without using it. */
    peek: (key: Key): Value | undefined => entries.get(key)?.value,
    set(key: Key, value: Value): void {
      const before = entries.get(key)
      const added = sizeCalculation(value, key)
      // The same value does not leave the map, unless it has become too large.
      if (before !== undefined)
        remove(before, before.value === value && added <= maxSize ? undefined : 'set')
      if (added > maxSize) return
      while (oldest !== undefined && (entries.size >= max || size + added > maxSize))
        remove(oldest, 'evict')
      const entry = { key, value, size: added, older: undefined, newer: undefined }
      entries.set(key, entry)
      append(entry)
      size += added
    },
    delete(key: Key): boolean {
      const entry = entries.get(key)
      if (entry !== undefined) remove(entry, 'delete')
      return entry !== undefined
    },
    /** Yields the keys, beginning with the least recently used one. */
    *rkeys(): Generator<Key, undefined> {
      for (let entry = oldest; entry !== undefined; entry = entry.newer) yield entry.key
    },
    get size(): number {
      return entries.size
    },
  }
}
