/** The findings of `portcullis policy check`. */
import type { Mistake } from '../../src/problems/mistake.ts'
import type { Place } from './source.ts'

export type Severity = 'error' | 'warning' | 'info'

/** A mistake has the members of {@link Mistake} as well. */
export interface Finding extends Partial<Omit<Mistake, 'path' | 'message'>> {
  /** Stable name of the rule: `unlimited-route`. */
  readonly rule: string
  readonly severity: Severity
  /** Path of the value in the definition: `['routes', 3, 'limits', 0]`. Empty: the whole policy. */
  readonly path: readonly (string | number)[]
  readonly message: string
  /** What to do. Absent if the message says it. */
  readonly suggestion?: string
}

export interface PlacedFinding extends Finding {
  readonly place: Place
}
