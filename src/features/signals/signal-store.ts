/** The port of the store for applied events. */
import type { SignalEffect } from './effects.ts'

export interface AppliedEvent {
  readonly transmitter: string
  /** `jti`. */
  readonly id: string
  /** How long it must be known that the event was applied: as long as it is accepted. */
  readonly lifeSeconds: number
  /** Cutoffs refuse what was issued until then. */
  readonly cutoffSeconds: number
  readonly effects: readonly SignalEffect[]
}

/** `stale`: a later event has disabled or enabled the account. */
export type EffectOutcome = 'applied' | 'stale'

export interface Applied {
  /** Whether the event was applied before: nothing has changed. */
  readonly isRepeated: boolean
  /** One for each effect. Of a repeated event: what is true now. */
  readonly outcomes: readonly EffectOutcome[]
}

/** Port. Throws `Unavailable` if the effects may not have been stored: the event can be sent again. */
export interface SignalStore {
  /**
   * Applies all effects in one step, and returns the outcome of each. They are in force in every isolate
   * from the next request on.
   */
  apply(event: AppliedEvent): Promise<Applied>
  /** Returns true to one of all gateways, once in `seconds`. */
  reservePoll(transmitter: string, seconds: number): Promise<boolean>
}
