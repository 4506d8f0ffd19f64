/** Each reason of an audit event has a sentence for people. */
import { describe, expect, test } from 'vitest'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { reasonOf } from '../../../src/audit/reason.ts'
import { Denied, Unavailable } from '../../../src/errors.ts'
import { EXPLAINED, sentenceOf } from '../../../src/features/console/event-sentence.ts'
import type { Denial, Dependency, Fault, OAuthErrorCode } from '../../../src/problems/reasons.ts'
import { anEvent } from '../../audit/event.ts'

type Code = Exclude<Denial['code'], 'oauth_refused' | 'refused_by_feature'>
type Example<Of extends Code> = Omit<Extract<Denial, { readonly code: Of }>, 'code'>

const problem = { code: 'unlucky', status: 403, title: 'Unlucky' } as const
const retryAfterSeconds = 1

/** One of each code: the compiler finds a new one. */
const DENIALS: { readonly [Of in Code]: readonly [Example<Of>, says: string] } = {
  missing_token: [{}, 'This resource needs a bearer token, and the request has none'],
  token_rejected: [{ check: 'exp' }, 'the token is not valid: it has expired'],
  token_revoked: [{ by: 'tenant' }, 'by a revocation of its tenant'],
  invalid_dpop_proof: [{ check: 'ath' }, 'missing or not valid, check ath'],
  use_dpop_nonce: [{ nonce: 'n' }, 'must contain the nonce'],
  ambiguous_credentials: [{ check: 'sources' }, 'has more than one credential, check sources'],
  cross_origin_request: [{ check: 'origin' }, 'page of another origin may not send this request'],
  sign_in_required: [{ check: 'token_revoked:subject' }, 'by a revocation of its subject'],
  insufficient_user_authentication: [
    { check: 'acr', demand: {} },
    'the login of the caller is not of the kind, or not as recent',
  ],
  sign_in_refused: [{ check: 'state' }, 'The sign-in could not be completed, check state'],
  banned: [{ by: 'address', retryAfterSeconds }, 'the address 192.0.2.1 is banned'],
  rate_limited: [{ limit: 'standard', retryAfterSeconds }, 'The limit "standard" is exhausted'],
  permission_missing: [
    { permission: 'orders:delete' },
    'the role customer does not grant orders:delete, which DELETE /orders/:id needs',
  ],
  relation_missing: [{ relation: 'order#owner' }, 'does not have the relation order#owner'],
  relation_unknown: [{ why: 'depth' }, 'could not be determined (depth)'],
  call_refused: [{ what: 'tool' }, 'the policy does not allow the tool'],
  signature_matched: [{ signature: 'sql_injection.break_out' }, 'sql_injection.break_out'],
  ambiguous_path: [{ check: 'parameter' }, 'can be read in more than one way, check parameter'],
  malformed_request: [{ check: 'websocket_version' }, 'must be 13 (RFC 6455), check'],
  invalid_input: [
    { errors: [{ in: 'body', path: '/price', message: 'must be a number' }] },
    'does not match the schema of this route: see body/price',
  ],
  payload_too_large: [{ maxBytes: 5 }, 'the body is larger than the route allows'],
  unsupported_media_type: [{ expected: 'application/json', encoded: false }, 'media type'],
  not_found: [{ check: 'session' }, 'There is no such resource, check session'],
  method_not_allowed: [{ allow: ['GET'] }, 'does not support this method'],
  conflict: [{}, 'Other requests changed the resource'],
}

const refused = (reason: string, different: Partial<AuditEvent> = {}) =>
  sentenceOf(
    anEvent({
      ...{ decision: 'deny', status: 403, method: 'DELETE', reason },
      grants: { roles: ['customer'], scopes: [] },
      ...different,
    }),
  )

describe('one sentence', () => {
  test.each(Object.entries(DENIALS))('for %s', (code, [rest, says]) => {
    const sentence = refused(reasonOf(new Denied({ code, ...rest } as Denial)))
    expect(sentence.toLowerCase()).toContain(says.toLowerCase())
    expect(sentence).toMatch(/^Refused with 403: .*[^.]\.$/)
  })

  test.each(Object.keys(EXPLAINED.OAUTH) as OAuthErrorCode[])('for the OAuth error %s', (error) => {
    const denial = { code: 'oauth_refused', error, check: 'client_unknown' } as const
    const route = '/oauth/token'
    expect(refused(reasonOf(new Denied(denial)), { route, grants: undefined })).toBe(
      `Refused with 403: ${EXPLAINED.OAUTH[error]}, check client_unknown.`,
    )
  })

  const dependencies = Object.keys(EXPLAINED.DEPENDENCIES) as Dependency[]
  const faults = Object.keys(EXPLAINED.FAULTS) as Fault[]
  test.each(dependencies)('for each failure of %s', (dependency) => {
    for (const fault of faults) {
      const reason = reasonOf(new Unavailable(dependency, fault))
      expect(refused(reason, { decision: 'error', status: 503 })).toBe(
        `Failed with 503: ${EXPLAINED.DEPENDENCIES[dependency]} ${EXPLAINED.FAULTS[fault]}.`,
      )
    }
  })

  test('for a refusal by a feature, whose words only its response has', () => {
    const denial = { code: 'refused_by_feature', problem, detail: 'x', check: 'dice' } as const
    expect(refused(reasonOf(new Denied(denial)))).toBe(
      'Refused with 403: a feature of the policy refused it (unlucky:dice).',
    )
  })

  test.each([
    [{ decision: 'allow', status: 200, reason: 'ok' }, 'Allowed: the response has the status 200.'],
    [
      { decision: 'error', status: 500, reason: 'internal_error' },
      'Failed with 500: the gateway has a defect; its log has the error of this request.',
    ],
    [
      { reason: 'stream_ended:token_revoked:subject' },
      'The open response was ended: the token is revoked, by a revocation of its subject.',
    ],
    [
      {
        grants: { roles: ['reader', 'clerk'], scopes: ['a', 'b'] },
        reason: 'permission_missing:x',
      },
      'Refused with 403: the roles reader and clerk with the scopes a b do not grant x, which DELETE /orders/:id needs.',
    ],
    [
      { grants: { roles: [], scopes: [] }, reason: 'permission_missing:x' },
      'Refused with 403: the caller has no role that grants x, which DELETE /orders/:id needs.',
    ],
    [{ route: null, reason: 'not_found' }, 'Refused with 403: the policy has no such route.'],
  ] as const)('of %o', (different, sentence) => {
    expect(refused('', different as Partial<AuditEvent>)).toBe(sentence)
  })
})
