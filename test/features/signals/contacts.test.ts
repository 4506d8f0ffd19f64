/** Events that name a user by an e-mail address or a phone number, which the sign-in has recorded. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { signals } from '../../../src/features/signals/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { freePort } from '../../harness/process.ts'
import { redisVars, startTestRedis } from '../../harness/redis.ts'
import { startHttpOrigin } from '../../origin/origin-server.ts'
import { type SigningProvider, startSigningProvider } from '../sign-in/signing-provider.ts'
import { createUserAgent } from '../sign-in/user-agent.ts'
import { CAEP, EVENT_AUDIENCE, pushEvent, RISC } from './transmitter.ts'

let redis: Awaited<ReturnType<typeof startTestRedis>>
let origin: Awaited<ReturnType<typeof startHttpOrigin>>
let provider: SigningProvider
let other: SigningProvider
let server: Awaited<ReturnType<typeof serve>>
let url: string

beforeAll(async () => {
  redis = await startTestRedis()
  origin = await startHttpOrigin((_, response) => response.end('[]'))
  provider = await startSigningProvider()
  other = await startSigningProvider()
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const providers = [provider, other]
  const route = { permission: 'orders:read', limits: ['standard'], session: 'browser' } as const
  server = await serve({
    policy: definePolicy({
      roles: { reader: ['orders:read'] },
      limits: { standard: '10000/min' },
      features: [
        signIn(),
        signals({
          transmitters: providers.map(({ issuer }) => ({ issuer, audience: EVENT_AUDIENCE })),
        }),
      ],
      routes: [{ method: 'GET', path: '/orders', ...route }],
    }),
    env: {
      ...redisVars(redis),
      PUBLIC_URL: url,
      ORIGIN_URL: `http://127.0.0.1:${origin.port}`,
      ISSUERS: JSON.stringify(
        providers.map(({ issuer }) => ({ issuer, audience: url, algorithms: ['ES256'] })),
      ),
      ISSUER_CLIENTS: JSON.stringify(
        providers.map(({ issuer, client }, at) => ({
          issuer,
          ...client,
          signIn: { name: `Provider ${at}`, scope: 'openid', callback: 'shared' },
        })),
      ),
      AUDIT_DATABASE: undefined,
    },
    port,
    graceMs: 1_000,
  })
})
afterAll(async () => {
  await Promise.all([server?.close(), provider?.close(), other?.close(), origin?.close()])
  await redis?.close()
})
beforeEach(async () => {
  await redis.direct.flushall()
  provider.reset()
  other.reset()
})

/** Signs a user in. Returns the function that loads a page with the session. */
async function signedIn(claims: object, at = provider) {
  at.answer.idToken = { roles: ['reader'], ...claims }
  const browser = createUserAgent()
  const query = new URLSearchParams({ iss: at.issuer, return_to: '/orders' })
  await browser.visit(`${url}/oauth/sign-in?${query}`)
  const load = async () => (await browser.send(`${url}/orders`)).status
  expect(await load()).toBe(200)
  return load
}

async function push(
  subject: object,
  type = `${CAEP}session-revoked`,
  from = provider,
  about: object = {},
  id: string = crypto.randomUUID(),
) {
  const claims = {
    iss: from.issuer,
    aud: EVENT_AUDIENCE,
    iat: Math.floor(Date.now() / 1000),
    jti: id,
    sub_id: subject,
    events: { [type]: about },
  }
  return (await pushEvent(url, await from.sign(claims, { typ: 'secevent+jwt' }))).status
}

const email = (address: string) => ({ format: 'email', email: address })
const VERIFIED = { sub: 'alice', email: 'Alice@Example.com', email_verified: true }
const indexed = () => redis.direct.keys('pc:signal-contact*')

describe('an event about a contact', () => {
  test.each([
    ['an e-mail address', email('alice@example.com')],
    ['an account', { format: 'account', uri: 'acct:alice@example.com' }],
    ['a complex subject', { format: 'complex', user: email('ALICE@example.com') }],
  ])('%s ends the sessions of its user, and of no other', async (_, subject) => {
    const [alice, bob] = [
      await signedIn(VERIFIED),
      await signedIn({ sub: 'bob', email: 'bob@example.com', email_verified: true }),
    ]
    expect(await push(subject)).toBe(202)
    expect([await alice(), await bob()]).toEqual([401, 200])
  })

  test('a phone number ends the sessions of its user', async () => {
    const load = await signedIn({
      sub: 'alice',
      phone_number: '+1 206 555 0100',
      phone_number_verified: 'true',
    })
    await push({ format: 'phone_number', phone_number: '+12065550100' })
    expect(await load()).toBe(401)
  })

  test('of another provider changes nothing [S90]', async () => {
    const [own, foreign] = [await signedIn(VERIFIED), await signedIn(VERIFIED, other)]
    expect(await push(email('alice@example.com'), undefined, other)).toBe(202)
    expect([await own(), await foreign()]).toEqual([200, 401])
  })

  test('of an unknown user is accepted, and changes nothing', async () => {
    const load = await signedIn(VERIFIED)
    expect(await push(email('carol@example.com'))).toBe(202)
    expect(await load()).toBe(200)
  })

  test('is 503 if the user cannot be looked up', async () => {
    const load = await signedIn(VERIFIED)
    redis.setAnswering(false)
    const failed = await push(email('alice@example.com'))
    redis.setAnswering(true)
    expect(failed).toBe(503)
    await expect.poll(() => push(email('alice@example.com'))).toBe(202)
    expect(await load()).toBe(401)
  })
})

describe('the index of contacts', () => {
  test.each([
    ['not verified', { email_verified: false }],
    ['of an unknown state', { email_verified: undefined }],
    ['verified as a number', { email_verified: 1 }],
  ])('has no address that is %s', async (_, claims) => {
    await signedIn({ ...VERIFIED, ...claims })
    expect(await indexed()).toEqual([])
  })

  test('names no address, is bounded, and ends with what the logins gave', async () => {
    for (let n = 0; n < 10; n++) await signedIn({ ...VERIFIED, sub: `user-${n}` })
    const keys = await indexed()
    expect(keys.join()).not.toMatch(/example/)
    for (const key of keys) {
      expect(await redis.direct.ttl(key)).toBeGreaterThan(86_000)
      expect(await redis.direct.ttl(key)).toBeLessThan(100_000)
    }
    const [contact = ''] = keys.filter((key) => key.startsWith('pc:signal-contact:'))
    expect(await redis.direct.zcard(contact)).toBe(8)
  })

  test('forgets a user whose account is purged', async () => {
    const load = await signedIn(VERIFIED)
    expect(await indexed()).toHaveLength(2)
    expect(await push(email('alice@example.com'), `${RISC}account-purged`)).toBe(202)
    expect(await load()).not.toBe(200)
    expect(await indexed()).toEqual([])
  })

  test('keeps a user whose account was enabled after the purge that arrives late', async () => {
    await signedIn(VERIFIED)
    const before = { event_timestamp: Math.floor(Date.now() / 1000) - 60 }
    expect(await push(email('alice@example.com'), `${RISC}account-enabled`)).toBe(202)
    // Transmitters repeat an event if the response was lost.
    for (const id of ['late', 'late']) {
      const purge = [`${RISC}account-purged`, provider, before, id] as const
      expect(await push(email('alice@example.com'), ...purge)).toBe(202)
      expect(await indexed()).toHaveLength(2)
    }
  })

  test('keeps a user who signs in again before the purge is repeated', async () => {
    const subject = { format: 'iss_sub', iss: provider.issuer, sub: 'alice' }
    const before = { event_timestamp: Math.floor(Date.now() / 1000) - 60 }
    const purge = [`${RISC}account-purged`, provider, before, 'early'] as const
    expect(await push(subject, ...purge)).toBe(202)
    expect(await push(subject, `${RISC}account-enabled`)).toBe(202)
    // The purge has ended what is issued in its second.
    await new Promise((resolve) => setTimeout(resolve, 1_000 - (Date.now() % 1_000)))
    await signedIn(VERIFIED)
    expect(await push(subject, ...purge)).toBe(202)
    expect(await indexed()).toHaveLength(2)
  })

  test('forgets the user of a purge whose other user was enabled since', async () => {
    await signedIn(VERIFIED)
    await signedIn({ ...VERIFIED, sub: 'bob' })
    const bob = { format: 'iss_sub', iss: provider.issuer, sub: 'bob' }
    const before = { event_timestamp: Math.floor(Date.now() / 1000) - 60 }
    expect(await push(bob, `${RISC}account-enabled`)).toBe(202)
    const purge = [`${RISC}account-purged`, provider, before] as const
    expect(await push(email('alice@example.com'), ...purge)).toBe(202)
    const [contact = ''] = await redis.direct.keys('pc:signal-contact:*')
    expect(await redis.direct.zrange(contact, 0, -1)).toEqual(['bob'])
  })
})
