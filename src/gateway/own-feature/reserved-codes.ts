/** Codes of the gateway itself, which no feature of a user may give to a problem of its own. */
import { isProblemCode, type ProblemCode } from '../../problems/problem.ts'
import type { Denial, Dependency, OAuthErrorCode } from '../../problems/reasons.ts'

type Reason = Denial['code'] | OAuthErrorCode | Dependency
/** The codes of features have an underscore. */
type Reserved = Exclude<Extract<Reason, `${string}_${string}`>, ProblemCode>

/** Where the reason in an audit event begins with another word than the code of the problem. */
const REASONS: Readonly<Record<Reserved, true>> = {
  access_denied: true,
  audit_log: true,
  call_refused: true,
  consent_required: true,
  identity_provider: true,
  invalid_client: true,
  invalid_client_metadata: true,
  invalid_grant: true,
  invalid_redirect_uri: true,
  invalid_request: true,
  invalid_request_uri: true,
  invalid_scope: true,
  invalid_target: true,
  key_set: true,
  login_required: true,
  unmet_authentication_requirements: true,
  oauth_refused: true,
  permission_missing: true,
  refused_by_feature: true,
  relation_missing: true,
  relation_unknown: true,
  request_not_supported: true,
  signature_matched: true,
  signing_keys: true,
  token_rejected: true,
  token_revoked: true,
  unauthorized_client: true,
  unsupported_grant_type: true,
  unsupported_response_type: true,
  unsupported_token_type: true,
}

/** Reports whether a caller, or an alert on audit events, would take the code for that of the gateway. */
export const isReservedCode = (code: string): boolean =>
  isProblemCode(code) || Object.hasOwn(REASONS, code) || code === 'stream_ended'
