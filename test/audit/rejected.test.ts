/** What the audit event of a refused token says, and what the response does not. */
import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { createTokenVerifier } from '../../src/access/tokens/verifier.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import { auditEventSchema } from '../../src/audit/event-schema.ts'
import { eventOfRow } from '../../src/audit/sql/audit-row.ts'
import { serializeEvent } from '../../src/audit/truncate.ts'
import { audit } from '../../src/middleware/audit.ts'
import { authenticate } from '../../src/middleware/authenticate.ts'
import { problemHandler } from '../../src/middleware/problem-handler.ts'
import { requestId } from '../../src/middleware/request-id.ts'
import {
  AUDIENCE,
  createSigner,
  encode,
  ISSUER,
  issuerOf,
  NOW_MS,
} from '../access/tokens/signer.ts'
import { rowOf } from './earlier-rows.ts'

const signer = await createSigner('ES256')
const events: AuditEvent[] = []

function appOf(overrides: object = {}) {
  const verifier = createTokenVerifier({
    issuers: [issuerOf([signer.publicJwk], overrides)],
    now: () => NOW_MS,
  })
  const app = new Hono()
  app.onError(problemHandler())
  app.use(requestId(), audit({ sink: { record: (event) => void events.push(event) } }))
  app.use(authenticate({ verifier }))
  return app.get('/', (c) => c.text('ok'))
}

/** Returns the event of a request with a token, and the text of its response. */
async function send(token: string, overrides: object = {}) {
  events.length = 0
  const headers = { authorization: `Bearer ${token}` }
  const response = await appOf(overrides).request('http://gateway.test/', { headers })
  const text = JSON.stringify([...response.headers]) + (await response.text())
  const [event] = events
  if (event === undefined) throw new Error('no event')
  return { event, text: text.replaceAll(event.requestId, '') }
}

const forged = (header: object, claims: object) =>
  `${encode({ alg: 'ES256', kid: 'ES256', typ: 'at+jwt', ...header })}.${encode({ iss: ISSUER, ...claims })}.AAAA`

describe('the audit event of a refused token', () => {
  test('contains the seen and the expected value, and the response contains neither [S29]', async () => {
    const { event, text } = await send(await signer.token({}, { typ: 'secret-typ' }))
    expect(event).toMatchObject({
      reason: 'token_rejected:typ',
      rejected: { seen: '"secret-typ"', expected: '["at+jwt"]', verified: true },
    })
    const other = await send(await signer.token({ aud: 'secret-audience' }))
    expect(other.event).toMatchObject({
      reason: 'token_rejected:aud',
      rejected: { seen: '["secret-audience"]', expected: `["${AUDIENCE}"]`, verified: true },
    })
    expect(text + other.text).not.toMatch(/secret|at\+jwt|api\.test|expected|seen/)
    const ordinary = await send(forged({}, {}))
    expect(ordinary.event.rejected).toBeUndefined()
    expect(ordinary.text).toBe(other.text)
  })

  test.each([
    ['alg', {}, { alg: 'HS256' }, '"HS256"', '["RS256","PS256","ES256","Ed25519","EdDSA"]'],
    ['iss', { iss: `${ISSUER}x` }, {}, `"${ISSUER}x"`, `["${ISSUER}"]`],
    ['iss', { iss: undefined }, {}, 'none', `["${ISSUER}"]`],
    ['iss', { iss: ['a', 1] }, {}, '["a",1]', `["${ISSUER}"]`],
  ])('names %s of an unverified token: %o %o', async (check, claims, header, seen, expected) => {
    const { event } = await send(forged(header, claims))
    expect(event.reason).toBe(`token_rejected:${check}`)
    expect(event.rejected).toEqual({ seen, expected, verified: false })
  })

  test('names a missing type, a missing audience, and an audience in another claim', async () => {
    expect((await send(await signer.token({}, { typ: undefined }))).event.rejected).toEqual({
      seen: 'none',
      expected: '["at+jwt"]',
      verified: true,
    })
    expect((await send(await signer.token({ aud: undefined }))).event.rejected).toEqual({
      seen: 'none',
      expected: `["${AUDIENCE}"]`,
      verified: true,
    })
    const config = { audienceClaim: 'azp', audience: ['web', 'mobile'] }
    const { event } = await send(await signer.token({ aud: undefined, azp: 'other' }), config)
    expect(event.rejected).toMatchObject({ seen: '["other"]', expected: '["web","mobile"]' })
  })

  test('contains only printable ASCII of a bounded length [S30]', async () => {
    for (const iss of [
      'a\r\nb\u0000\u001b[31m',
      '\u202e\u2028\ud800 \u00e9',
      'x'.repeat(4_000),
      '"'.repeat(1_500),
      '\u2028'.repeat(1_000),
      Array.from({ length: 500 }, () => 'aud'),
      { deep: { er: ['x'.repeat(3_000)] } },
    ]) {
      const { event } = await send(forged({}, { iss }))
      expect(event.rejected?.seen).toMatch(/^[\x20-\x7e]{1,200}$/)
      expect(auditEventSchema.parse(JSON.parse(serializeEvent(event)))).toEqual(event)
    }
  })

  test('is stored and read unchanged', async () => {
    const { event } = await send(forged({ typ: 'JWT' }, {}))
    expect(eventOfRow(rowOf(event))).toEqual(event)
    const long = { ...event, rejected: { seen: 'x'.repeat(9_000), expected: 'y', verified: false } }
    expect(auditEventSchema.parse(JSON.parse(serializeEvent(long))).rejected?.seen).toMatch(/…\[\+/)
  })
})
