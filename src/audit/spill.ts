/** Where events wait while the queue does not take them. */
import type { Person } from './erasure.ts'

/** What is kept, as JSON. */
export interface Spilled {
  /** Oldest first. */
  readonly events: readonly string[]
  /** An event that tells of lost ones. */
  readonly lostEvent: string | undefined
}

/** Port: a bounded store that outlives the isolate. Each call rejects when the store fails. */
export interface AuditSpill {
  /**
   * Keeps a batch, and adds to the number of lost events: `lost`, which were lost before, and those,
   * the oldest, that the bound cuts off. Answers how many the latter are. `id` is the batch's own:
   * one that is kept again within a minute changes nothing and has the same answer.
   */
  keep(id: string, events: readonly string[], lost: number): Promise<number>
  /**
   * Reads the oldest `max` events, and the one that tells of lost ones, and leaves them there, so
   * that a reader that dies loses nothing. Where events are lost and no event tells of them,
   * `lostEvent` makes one of their number, and it takes the place of the number at once: who reads
   * next, or at the same time, sees the same event, under the same id.
   */
  peek(max: number, lostEvent: (lost: number) => string): Promise<Spilled>
  /** Removes what has arrived, at least one event. Unknown ones are no error. */
  forget(arrived: Spilled): Promise<void>
}

/** Port: takes somebody out of the events that are kept. Rejects when the store fails. */
export interface SpillRedaction {
  /** Events stay; what they say of this person goes. Those that join meanwhile are not covered. */
  redact(person: Person): Promise<void>
}
