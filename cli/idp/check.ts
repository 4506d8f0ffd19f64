/** The report of `portcullis idp doctor` about one rule. */
import { shown } from '../../src/access/tokens/rejection.ts'
import type { Finding } from '../doctor/finding.ts'

/** Fields of an entry of `ISSUERS`, as an operator writes them. */
export type Fields = Readonly<Record<string, unknown>>

/** A finding about a token or an issuer. `seen` and `expected` are bounded, and printable ASCII. */
export interface Check extends Finding {
  readonly expected?: string
  /** The mistake as one sentence without a full stop. Absent if there is none. */
  readonly mistake?: string
  /** Fields of the entry with which the check passes. Absent if the entry is not the mistake. */
  readonly change?: Fields
  /** The decision that the change needs from the operator: it accepts more tokens than before. */
  readonly condition?: string
}

interface Details extends Pick<Check, 'expected' | 'change' | 'condition'> {
  /** Without a full stop. */
  readonly remedy: string
}

/** It may contain the URL of an issuer. */
const MAX_MISTAKE_CHARS = 500

export const passed = (check: string, seen: unknown, expected?: unknown): Check => ({
  level: 'ok',
  check,
  seen: textOf(seen),
  ...(expected !== undefined && { expected: textOf(expected) }),
})

export const failed = (
  check: string,
  seen: unknown,
  mistake: string,
  { remedy, ...details }: Details,
): Check => ({
  level: 'error',
  check,
  seen: textOf(seen),
  mistake: mistake.slice(0, MAX_MISTAKE_CHARS),
  remedy: `${remedy}.`,
  ...details,
})

export const doubtful = (
  check: string,
  seen: unknown,
  mistake: string,
  details: Details,
): Check => ({ ...failed(check, seen, mistake, details), level: 'warning' })

/** A check that could not be made; `why` is a sentence without a full stop. */
export const skipped = (check: string, why: string): Check => ({
  level: 'not checked',
  check,
  seen: why,
})

/** Returns a value of a token or of an entry for a table; an absent value is `none`. */
export const textOf = (value: unknown): string =>
  value === undefined || (Array.isArray(value) && value.length === 0)
    ? 'none'
    : shown(Array.isArray(value) && value.length === 1 ? value[0] : value)
