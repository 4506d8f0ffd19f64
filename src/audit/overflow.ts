/** The port for the overflow: audit events that are stored while the queue fails. */

export interface OverflowBatch {
  /** JSON, oldest first. */
  readonly events: readonly string[]
  /** An event that reports lost events. */
  readonly lostEvent: string | undefined
}

/** Port: a bounded store that outlives the isolate. Each call rejects if the store fails. */
export interface AuditOverflow {
  /**
   * Stores a batch and adds to the count of lost events: `lost`, which were lost before, and the
   * oldest events that exceed the bound. Resolves with the number of the latter. `id` identifies
   * the batch: storing it again within a minute changes nothing and returns the same number.
   */
  keep(id: string, events: readonly string[], lost: number): Promise<number>
  /**
   * Reads the oldest `max` events and the event that reports lost events. Does not remove them, so
   * that a reader that fails loses nothing. If events are lost and no event reports them,
   * `lostEvent` creates that event from their number. The event replaces the number at once, so all
   * later and concurrent readers see the same event with the same id.
   */
  peek(max: number, lostEvent: (lost: number) => string): Promise<OverflowBatch>
  /** Removes delivered events, at least one. Unknown events are ignored. */
  forget(arrived: OverflowBatch): Promise<void>
}
