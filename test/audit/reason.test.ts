import { HTTPException } from 'hono/http-exception'
import { expect, test } from 'vitest'
import { decisionOf, reasonOf } from '../../src/audit/reason.ts'
import { Denied, Misconfigured, Unavailable } from '../../src/errors.ts'
import type { Denial } from '../../src/problems/reasons.ts'

const DENIALS: readonly [Denial, string][] = [
  [{ code: 'missing_token' }, 'missing_token'],
  [{ code: 'token_rejected', check: 'exp' }, 'token_rejected:exp'],
  [{ code: 'token_revoked', by: 'session' }, 'token_revoked:session'],
  [{ code: 'banned', by: 'address', retryAfterSeconds: 9 }, 'banned:address'],
  [{ code: 'rate_limited', limit: 'standard', retryAfterSeconds: 9 }, 'rate_limited:standard'],
  [{ code: 'permission_missing', permission: 'orders:read' }, 'permission_missing:orders:read'],
  [{ code: 'call_refused', what: 'tool' }, 'call_refused:tool'],
  [
    { code: 'signature_matched', signature: 'sql_injection.effect' },
    'signature_matched:sql_injection.effect',
  ],
  [{ code: 'ambiguous_path', check: 'dot_segment' }, 'ambiguous_path:dot_segment'],
  [{ code: 'malformed_request', check: 'body_syntax' }, 'malformed_request:body_syntax'],
  [
    { code: 'invalid_input', errors: [{ in: 'body', path: '/card', message: '4111 1111' }] },
    'invalid_input:body/card',
  ],
  [{ code: 'payload_too_large', maxBytes: 10 }, 'payload_too_large'],
  [
    { code: 'unsupported_media_type', encoded: false, expected: 'application/json' },
    'unsupported_media_type',
  ],
  [{ code: 'not_found' }, 'not_found'],
  [{ code: 'method_not_allowed', allow: ['GET'] }, 'method_not_allowed'],
  [{ code: 'conflict' }, 'conflict'],
]

test.each(DENIALS)('a refusal is a deny with the check that refused: %o', (denial, reason) => {
  const error = new Denied(denial)
  expect(decisionOf(error)).toBe('deny')
  expect(reasonOf(error)).toBe(reason)
})

test('a dependency that fails is an error with its fault, and not a deny', () => {
  const error = new Unavailable('redis', 'timeout', { cause: new Error('EVAL secret') })
  expect(decisionOf(error)).toBe('error')
  expect(reasonOf(error)).toBe('redis:timeout')
})

test('an unexpected error is an error, without its text in the trail', () => {
  for (const error of [new TypeError('password=hunter2'), 'a thrown string', null]) {
    expect(decisionOf(error)).toBe('error')
    expect(reasonOf(error)).toBe('internal_error')
  }
  expect(reasonOf(new Misconfigured('The environment', ['SECRET: too short']))).toBe(
    'misconfigured',
  )
})

test('a request that nothing refused is allowed', () => {
  expect(decisionOf(undefined)).toBe('allow')
  expect(reasonOf(undefined)).toBe('ok')
})

test('an HTTPException is the response of a handler, or the refusal of a stage', () => {
  const decisions = [200, 403, 503].map((status) => {
    const error = new HTTPException(status as 403)
    return ['admit', 'handler', undefined].map((stage) => decisionOf(error, stage))
  })
  expect(decisions).toEqual([
    ['deny', 'allow', 'allow'],
    ['deny', 'allow', 'allow'],
    ['error', 'allow', 'allow'],
  ])
  expect(reasonOf(new HTTPException(403, { message: 'secret' }), 'admit')).toBe('http_exception')
})
