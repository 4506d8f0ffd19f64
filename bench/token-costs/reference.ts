/** What another system says that its tokens cost. Other machine, other language: for orientation. */
import type { CaseId } from './cases.ts'
import type { OperationId } from './operations.ts'

export const TOKEN_REFERENCE_NOTE =
  'theirs: what Identity V2 (Go) states of itself, on other hardware; for orientation only.'

export interface TokenReference {
  /** What of ours does the same kind of work. */
  readonly of: OperationId | CaseId
  /** As they write it. */
  readonly says: string
}

export const TOKEN_REFERENCES: readonly TokenReference[] = [
  { of: 'uuid', says: '354 ns for one' },
  { of: 'issue-RS256', says: '1.42 ms, 860/s a core' },
  { of: 'verify-RS256', says: '56.3 us, 21,742/s a core' },
  { of: 'issue-jwt', says: 'required 1,000/s' },
  { of: 'validate-cached', says: 'required 5,000/s' },
]

/** Their words; empty where they say nothing. */
export function theirs(of: OperationId | CaseId): string {
  return TOKEN_REFERENCES.find((reference) => reference.of === of)?.says ?? ''
}
