/** From what a guard threw to what the audit trail says of it: in full, unlike the wire. */
import { type Denial, Denied, Misconfigured, Unavailable } from '../errors.ts'
import type { AuditDecision } from './event.ts'

/**
 * The decision that an outcome stands for. `undefined` (nothing was thrown) is `allow`: whatever
 * was guarded was asked, and its status is its own, a 404 or a 500 included.
 */
export function decisionOf(error: unknown): AuditDecision {
  if (error === undefined) return 'allow'
  return error instanceof Denied ? 'deny' : 'error'
}

/**
 * The precise reason, as `code` or `code:detail`: `ok`, `token_rejected:exp`, `redis:timeout`.
 * Details are words of this gateway and its policy. An error's message is never among them: it may
 * hold what a dependency said, and that may hold anything.
 */
export function reasonOf(error: unknown): string {
  if (error === undefined) return 'ok'
  if (error instanceof Denied) return reasonOfDenial(error.denial)
  if (error instanceof Unavailable) return `${error.dependency}:${error.fault}`
  return error instanceof Misconfigured ? 'misconfigured' : 'internal_error'
}

/** The same of a refusal that may not have happened (observe mode). */
export function reasonOfDenial(denial: Denial): string {
  switch (denial.code) {
    case 'token_rejected':
    case 'dpop_rejected':
    case 'path_ambiguous':
    case 'request_malformed':
      return `${denial.code}:${denial.check}`
    case 'token_revoked':
    case 'banned':
      return `${denial.code}:${denial.by}`
    case 'rate_limited':
      return `${denial.code}:${denial.limit}`
    case 'call_refused':
      return `${denial.code}:${denial.what}`
    case 'signature_matched':
      return `${denial.code}:${denial.signature}`
    case 'permission_missing':
      return `${denial.code}:${denial.permission}`
    case 'relation_missing':
      return `${denial.code}:${denial.relation}`
    case 'relation_unknown':
      return `${denial.code}:${denial.why}`
    case 'oauth_refused':
      return `${denial.error}:${denial.check}`
    case 'token_missing':
    case 'dpop_nonce_missing':
    case 'input_invalid':
    case 'body_too_large':
    case 'media_type_unsupported':
    case 'route_unknown':
    case 'method_unknown':
      return denial.code
  }
}
