/** Counts that a feature keeps in this isolate. The metrics reporter reads them. */

/** What one cache counts. The cache increments the numbers. */
export interface Tally {
  hits: number
  misses: number
  /** Entries that made room for others although they were still valid. */
  evictions: number
}

export const newTally = (): Tally => ({ hits: 0, misses: 0, evictions: 0 })

/** Counts an entry that left an LRU cache, if it left for lack of room. */
export function countEviction(tally: Tally, reason: string): void {
  if (reason === 'evict') tally.evictions += 1
}

/** Audit events by outcome. The audit queue increments them. */
export interface AuditTally {
  sent: number
  spilled: number
  lost: number
}

export const newAuditTally = (): AuditTally => ({ sent: 0, spilled: 0, lost: 0 })

/** Numbers of spans. They only increase. */
export interface SpanTally {
  exported: number
  dropped: number
}
