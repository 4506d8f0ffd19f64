/** Maps an error to its decision and its precise reason in the audit trail. */
import { carriesResponse, Denied, Misconfigured, Unavailable } from '../errors.ts'
import type { Denial, InputError, RejectionDetail } from '../problems/reasons.ts'
import type { AuditDecision } from './event.ts'

/**
 * The reason begins with it in an event about the end of an open response or WebSocket, which follows the
 * event of its request.
 */
export const STREAM_ENDED = 'stream_ended:'

/** The stage that begins where the handlers of an app do. */
export const HANDLER_STAGE = 'handler'

/** Reports whether a handler of the app threw its response: no stage of the gateway runs. */
const isOfHandler = (error: unknown, stage: string | undefined): error is Error =>
  carriesResponse(error) && (stage === undefined || stage === HANDLER_STAGE)

/**
 * No error is `allow`: the guarded handler ran, and its status may be any, such as 404 or 500. The
 * same is true of an `HTTPException` that the handler threw as its response. One of a `stage` of the
 * gateway is a refusal, such as one of a function of the policy.
 */
export function decisionOf(error: unknown, stage?: string): AuditDecision {
  if (error === undefined || isOfHandler(error, stage)) return 'allow'
  const isRefusal = error instanceof Denied || (carriesResponse(error) && error.status < 500)
  return isRefusal ? 'deny' : 'error'
}

/**
 * Returns the precise reason as `code` or `code:detail`: `ok`, `token_rejected:exp`,
 * `redis:timeout`. Details are words of this gateway and its policy, never an error's message, which
 * may contain arbitrary text from a dependency.
 */
export function reasonOf(error: unknown, stage?: string): string {
  if (error === undefined || isOfHandler(error, stage)) return 'ok'
  if (error instanceof Denied) return reasonOfDenial(error.denial)
  if (error instanceof Unavailable) return `${error.dependency}:${error.fault}`
  if (carriesResponse(error)) return 'http_exception'
  return error instanceof Misconfigured ? 'misconfigured' : 'internal_error'
}

/** Returns what the check of a refused token found and expected, if it says so. */
export function rejectionOf(error: unknown): RejectionDetail | undefined {
  if (!(error instanceof Denied) || error.denial.code !== 'token_rejected') return undefined
  return error.denial.detail
}

export function reasonOfDenial(denial: Denial): string {
  switch (denial.code) {
    case 'token_rejected':
    case 'invalid_dpop_proof':
    case 'ambiguous_credentials':
    case 'cross_origin_request':
    case 'sign_in_required':
    case 'insufficient_user_authentication':
    case 'sign_in_refused':
    case 'ambiguous_path':
    case 'malformed_request':
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
    case 'not_found':
      return denial.check === undefined ? denial.code : `${denial.code}:${denial.check}`
    case 'invalid_input':
      return `${denial.code}${locateMember(denial.errors)}`
    case 'refused_by_feature': {
      const { problem, check } = denial
      return check === undefined ? problem.code : `${problem.code}:${check}`
    }
    case 'missing_token':
    case 'use_dpop_nonce':
    case 'payload_too_large':
    case 'unsupported_media_type':
    case 'method_not_allowed':
    case 'conflict':
      return denial.code
  }
}

const MAX_MEMBER_CHARS = 128
/** A name that a schema can contain. Any other name may come from the caller, such as a record's key. */
const MEMBER_NAME = /^(?:[A-Za-z_$][\w$-]{0,39}|\d{1,6})$/

/** Returns the place of the first finding: `:body/items/0/price`. Never a value. */
function locateMember([first]: readonly InputError[]): string {
  if (first === undefined) return ''
  const segments = first.path.split('/').map((name) => (MEMBER_NAME.test(name) ? name : '*'))
  const path = first.path === '' ? '' : `/${segments.slice(1).join('/')}`
  return `:${first.in}${path}`.slice(0, MAX_MEMBER_CHARS)
}
