import { expect, test } from 'vitest'
import { decisionOf, reasonOf } from '../../src/audit/reason.ts'
import { type Denial, Denied, Misconfigured, Unavailable } from '../../src/errors.ts'

const DENIALS: readonly [Denial, string][] = [
  [{ code: 'token_missing' }, 'token_missing'],
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
  [{ code: 'path_ambiguous', check: 'dot_segment' }, 'path_ambiguous:dot_segment'],
  [{ code: 'request_malformed', check: 'json' }, 'request_malformed:json'],
  [
    { code: 'input_invalid', errors: [{ in: 'body', path: '/card', message: '4111 1111' }] },
    'input_invalid',
  ],
  [{ code: 'body_too_large', maxBytes: 10 }, 'body_too_large'],
  [{ code: 'media_type_unsupported', expected: 'application/json' }, 'media_type_unsupported'],
  [{ code: 'route_unknown' }, 'route_unknown'],
  [{ code: 'method_unknown', allow: ['GET'] }, 'method_unknown'],
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
