/** Counts that a feature keeps in this isolate. The metrics reporter reads them. */

/** Hits and misses of one cache. The cache increments them. */
export interface Tally {
  hits: number
  misses: number
}

export const newTally = (): Tally => ({ hits: 0, misses: 0 })

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
