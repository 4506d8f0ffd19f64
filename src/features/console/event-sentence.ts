/** Says in one sentence why a request was refused, or failed: from the reason of its audit event. */
import type { AuditEvent } from '../../audit/event.ts'
import { STREAM_ENDED } from '../../audit/reason.ts'
import type { Check } from '../../problems/checks.ts'
import { problemOfDenial } from '../../problems/problem-of.ts'
import type { Denial, Dependency, Fault, OAuthErrorCode } from '../../problems/reasons.ts'

type Code = Exclude<Denial['code'], 'oauth_refused' | 'refused_by_feature'>
/** `detail` is what follows the code in the reason. Returns a clause without the period at its end. */
type Words = (detail: string, event: AuditEvent) => string

/** Returns the text of the response, if it says all. */
const ofProblem = (denial: Denial): string => problemOfDenial(denial).detail.replace(/\.$/, '')

const check = (detail: string): string => (detail === '' ? '' : `, check ${detail}`)

/** What the most frequent checks of a token mean. */
const TOKEN_CHECKS: Readonly<Record<string, string>> = {
  exp: 'it has expired',
  nbf: 'it is not valid yet',
  iat: 'its time of issue is not acceptable',
  aud: 'it is for another audience',
  iss: 'the gateway trusts no such issuer',
  signature: 'its signature is not valid',
  kid_unknown: 'its issuer has no such key',
  lifetime: 'it is valid for longer than its issuer may allow',
  reference_unknown: 'the gateway has no record of it',
  revoked: 'it was revoked or replaced',
  inactive: 'its issuer says that it is not active',
}

const tokenChecked = (detail: string): string =>
  TOKEN_CHECKS[detail] ?? `it did not pass the check ${detail}`

const routeOf = ({ method, route }: AuditEvent): string =>
  route === null ? 'this request' : `${method} ${route}`

/** Says that what the caller had does not grant the permission: its roles, within its scopes. */
function permissionMissing(permission: string, event: AuditEvent): string {
  const needed = `${permission}, which ${routeOf(event)} needs`
  const { roles, scopes } = event.grants ?? {}
  if (roles === undefined || scopes === undefined) return `the caller does not have ${needed}`
  const within = scopes.length === 0 ? '' : ` with the scopes ${scopes.join(' ')}`
  if (roles.length === 0) return `the caller has no role that${within} grants ${needed}`
  return roles.length === 1
    ? `the role ${roles[0]}${within} does not grant ${needed}`
    : `the roles ${roles.join(' and ')}${within} do not grant ${needed}`
}

/** Why a session was not enough, by the check. */
function signInRequired(detail: string): string {
  if (detail === 'no_session') return 'the request has no session and no token'
  if (detail === 'step_up') return 'the login is not of the kind, or not as recent, as is demanded'
  if (detail === 'host') return 'the session is of another host'
  if (detail.startsWith('token_revoked:')) return revokedBy(detail.slice('token_revoked:'.length))
  return `the token of the session is not valid: ${tokenChecked(detail.replace('token_rejected:', ''))}`
}

const OWNERS: Readonly<Record<string, string>> = {
  token: 'the token itself',
  session: 'its session',
}

function revokedBy(by: string): string {
  return `the token is revoked, by a revocation of ${OWNERS[by] ?? `its ${by}`}`
}

/** By the code of the denial. */
const WORDS: Readonly<Record<Code, Words>> = {
  missing_token: () => `${ofProblem({ code: 'missing_token' })}, and the request has none`,
  token_rejected: (detail, { rejected }) =>
    `the token is not valid: ${tokenChecked(detail)}${
      rejected === undefined ? '' : ` (found ${rejected.seen}, expected ${rejected.expected})`
    }`,
  token_revoked: revokedBy,
  invalid_dpop_proof: (detail) =>
    `the proof of possession of the token is missing or not valid${check(detail)}`,
  use_dpop_nonce: () => ofProblem({ code: 'use_dpop_nonce', nonce: '' }),
  ambiguous_credentials: (detail) =>
    `${ofProblem({ code: 'ambiguous_credentials', check: 'x:' })}${check(detail)}`,
  cross_origin_request: (detail) =>
    `${ofProblem({ code: 'cross_origin_request', check: 'x:' })}${check(detail)}`,
  sign_in_required: signInRequired,
  insufficient_user_authentication: (detail) =>
    `the login of the caller is not of the kind, or not as recent, as the route demands${check(detail)}`,
  sign_in_refused: (detail) =>
    `${ofProblem({ code: 'sign_in_refused', check: 'x:' })}${check(detail)}`,
  banned: (detail, { actor, address }) =>
    detail === 'subject'
      ? `the subject ${actor.subject ?? 'of the token'} is banned`
      : `the ${detail} ${address} is banned`,
  rate_limited: (limit) => ofProblem({ code: 'rate_limited', limit, retryAfterSeconds: 0 }),
  permission_missing: permissionMissing,
  relation_missing: (detail, { grants }) =>
    `the caller does not have the relation ${grants?.relation ?? detail}`,
  relation_unknown: (detail, { grants }) =>
    `the relation ${grants?.relation ?? 'of the route'} could not be determined (${detail})`,
  call_refused: (detail, { call }) =>
    detail === 'definition'
      ? `the server has changed the tool ${call?.name ?? ''}, and its new definition is not approved`
      : `the policy does not allow the ${detail}${call === undefined ? '' : ` ${call.name ?? call.method}`} here`,
  signature_matched: (detail) => `the input matches the attack signature ${detail}`,
  ambiguous_path: (detail) =>
    `${ofProblem({ code: 'ambiguous_path', check: 'x:' })}${check(detail)}`,
  malformed_request: (detail) =>
    `${ofProblem({ code: 'malformed_request', check: detail as Check<'malformed_request'> })}${check(detail)}`,
  invalid_input: (detail) =>
    `${ofProblem({ code: 'invalid_input', errors: [] })}${detail === '' ? '' : `: see ${detail}`}`,
  payload_too_large: () => 'the body is larger than the route allows',
  unsupported_media_type: () =>
    'the body has a media type or a coding that the route does not accept',
  not_found: (detail, { route }) =>
    `${route === null ? 'the policy has no such route' : ofProblem({ code: 'not_found' })}${check(detail)}`,
  method_not_allowed: () => ofProblem({ code: 'method_not_allowed', allow: [] }),
  conflict: () => ofProblem({ code: 'conflict' }),
}

/** By the error code of the OAuth routes. */
const OAUTH: Readonly<Record<OAuthErrorCode, string>> = {
  invalid_request: 'the OAuth request is not valid',
  invalid_client: 'the client could not be authenticated',
  invalid_grant: 'the grant, such as a code or a refresh token, is not valid',
  unauthorized_client: 'the client may not use this grant',
  unsupported_grant_type: 'the gateway does not offer this grant type',
  unsupported_token_type: 'the gateway does not revoke tokens of this type',
  invalid_scope: 'the client may not have these scopes',
  invalid_target: 'the client may not have tokens for this resource',
  invalid_dpop_proof: 'the proof of possession is missing or not valid',
  use_dpop_nonce: 'the proof of possession must contain a nonce of the gateway',
  unsupported_response_type: 'the gateway does not offer this response type',
  access_denied: 'the user or the gateway denied the access',
  login_required: 'the user must sign in',
  unmet_authentication_requirements: 'the login of the user does not meet the demand',
  consent_required: 'the user must consent',
  request_not_supported: 'the gateway accepts no request objects',
  invalid_request_uri: 'the pushed request is not valid',
  invalid_redirect_uri: 'the redirect URI is not one of the client',
  invalid_client_metadata: 'the metadata of the client are not valid',
}

const DEPENDENCIES: Readonly<Record<Dependency, string>> = {
  redis: 'Redis',
  key_set: 'the key set of the issuer',
  introspection: 'the token introspection of the issuer',
  identity_provider: 'the identity provider',
  authority: 'the decision point',
  origin: 'the origin',
  audit_log: 'the audit database',
  signing_keys: 'the signing keys of the gateway',
  gateway: 'the gateway itself',
}

const FAULTS: Readonly<Record<Fault, string>> = {
  unreachable: 'could not be reached',
  timeout: 'did not answer in time',
  malformed: 'gave an answer that is not valid',
  too_large: 'gave an answer that is too large',
  refused: 'answered with an error',
  unauthorized: 'does not accept the credentials of the gateway',
  no_key: 'has no key that signs now',
  overloaded: 'has too many requests that wait',
  stale: 'has data that is older than the request allows',
}

const OTHERS: Readonly<Record<string, string>> = {
  http_exception: 'a function of the policy refused it',
  misconfigured: 'the configuration of the gateway is not valid; its log lists the mistakes',
  internal_error: 'the gateway has a defect; its log has the error of this request',
  audit_lost: 'events of the audit trail were lost',
}

/** All codes with a sentence of their own. */
export const EXPLAINED = { WORDS, OAUTH, DEPENDENCIES, FAULTS }

const has = <Table extends object>(table: Table, name: string): name is string & keyof Table =>
  Object.hasOwn(table, name)

/** Returns the clause of a reason. Undefined: the reason is of a feature, and has no words. */
function clauseOf(reason: string, event: AuditEvent): string | undefined {
  const at = reason.indexOf(':')
  const [code, detail] = at < 0 ? [reason, ''] : [reason.slice(0, at), reason.slice(at + 1)]
  // The OAuth routes have some of these codes too, always with a check.
  if (event.route?.startsWith('/oauth/') && has(OAUTH, code)) return OAUTH[code] + check(detail)
  if (has(WORDS, code)) return WORDS[code](detail, event)
  if (has(OAUTH, code)) return OAUTH[code] + check(detail)
  if (has(DEPENDENCIES, code) && has(FAULTS, detail))
    return `${DEPENDENCIES[code]} ${FAULTS[detail]}`
  return has(OTHERS, code) ? OTHERS[code] : undefined
}

/** Returns one sentence: `Refused with 403: the role customer does not grant orders:delete, which DELETE /orders/:id needs.` */
export function sentenceOf(event: AuditEvent): string {
  const { decision, status, reason } = event
  const isEnd = reason.startsWith(STREAM_ENDED)
  const cause = isEnd ? reason.slice(STREAM_ENDED.length) : reason
  if (decision === 'allow')
    return isEnd ? 'The open response ended.' : `Allowed: the response has the status ${status}.`
  const clause = clauseOf(cause, event) ?? `a feature of the policy refused it (${cause})`
  if (isEnd) return `The open response was ended: ${lowered(clause)}.`
  const begin = decision === 'deny' ? 'Refused' : 'Failed'
  return `${begin}${status === 0 ? '' : ` with ${status}`}: ${lowered(clause)}.`
}

/** Texts of responses begin with a capital letter. Names such as Redis keep it. */
const lowered = (text: string): string =>
  text.replace(/^(?:The|This|A|Other|Requests|Input)\b/, (word) => word.toLowerCase())
