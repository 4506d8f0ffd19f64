/** What the errors of the code flow say to clients. */
import type { CodeFlowErrorCode, Descriptions } from '../../authorization-server/descriptions.ts'

const OF_CODES: Readonly<Record<CodeFlowErrorCode, string>> = {
  unsupported_response_type: 'Only the response type code is supported.',
  login_required: 'The user is not signed in.',
  unmet_authentication_requirements: 'The login does not meet what the request demands.',
  consent_required: 'The user has not allowed this yet.',
  request_not_supported: 'Request objects are not supported.',
  invalid_request_uri: 'The request_uri is unknown, expired, or of another client.',
  invalid_redirect_uri: 'A redirect URI is not one that a public client may have.',
  invalid_client_metadata: 'The metadata is malformed, or not that of a public client.',
}

/** Without `"` and `\` (RFC 6749 section 5.2). */
export const DESCRIPTIONS: Descriptions = {
  ...OF_CODES,
  authorize_request_uri: 'Push the request first (RFC 9126).',
}
