/** Beside which published figures those of tokens stand: the same kind of work. */
import type { PublishedId } from '../published.ts'
import type { CaseId } from './cases.ts'
import type { OperationId } from './operations.ts'

/** By what is measured here. */
export const TOKENS_BESIDE: { readonly [Id in OperationId | CaseId]?: PublishedId } = {
  uuid: 'identity-opaque',
  'issue-RS256': 'identity-sign',
  'verify-RS256': 'identity-verify',
  'issue-jwt': 'identity-issue-rate',
  'validate-cached': 'identity-validate-rate',
}
