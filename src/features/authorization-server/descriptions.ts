/** What other features say about their errors at `/oauth/*`. */
import type { Check } from '../../problems/checks.ts'
import type { AuthorizationErrorCode } from '../../problems/reasons.ts'

/** Codes that only the code flow has. It describes them. */
export type CodeFlowErrorCode = Exclude<AuthorizationErrorCode, 'access_denied'>

/**
 * Descriptions of codes of the code flow, and of checks that the client can correct and that reveal nothing
 * about another party. That of a check comes first.
 */
export type Descriptions = Readonly<
  Partial<Record<CodeFlowErrorCode | Check<'oauth_refused'>, string>>
>
