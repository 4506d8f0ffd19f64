/** Where events wait while the queue does not take them. */
import type { Person } from './erasure.ts'

/** What is kept: events as JSON, oldest first, and how many others are known to be lost. */
export interface Spilled {
  readonly events: readonly string[]
  readonly lost: number
}

/** Port: a bounded store that outlives the isolate. Each call rejects when the store fails. */
export interface AuditSpill {
  /**
   * Keeps events, and adds to the number of lost ones. Answers how many events, the oldest, the
   * bound has cut off; that number is the caller's to report.
   */
  keep(events: readonly string[], lost: number): Promise<number>
  /**
   * Reads the oldest `max` events and leaves them there, so that a reader that dies loses nothing;
   * takes the number of lost ones away, so that it is reported once.
   */
  peek(max: number): Promise<Spilled>
  /** Removes events that have arrived. Unknown ones are no error. */
  forget(events: readonly string[]): Promise<void>
}

/** Port: takes somebody out of the events that are kept. Rejects when the store fails. */
export interface SpillRedaction {
  /** Events stay; what they say of this person goes. Those that join meanwhile are not covered. */
  redact(person: Person): Promise<void>
}
