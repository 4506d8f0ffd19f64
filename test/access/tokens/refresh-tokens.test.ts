import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { revokedBeforeKey } from '../../../src/access/revocation/revocation.ts'
import { seededIds } from '../../../src/access/tokens/token-issuer.ts'
import { Unavailable } from '../../../src/errors.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { startHttpServer } from '../../harness/http-server.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { GATEWAY } from './issuing.ts'
import { checkOf, dump, GRACE_SECONDS, gateway, newSession, SESSION_SECONDS } from './refreshing.ts'
import { NOW_SECONDS } from './signer.ts'

const IDP = 'https://idp.test/'
let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
beforeEach(async () => {
  await redis.direct.flushall()
})
afterAll(() => redis.close())

const familyKey = async () => (await redis.direct.keys('pc:refresh:*'))[0] ?? ''

describe('an inspection of a refresh token', () => {
  it('returns the session, and consumes nothing [S38]', async () => {
    const { tokens } = gateway(redis)
    const session = newSession()
    const token = await tokens.open(session)
    const before = await dump(redis)
    for (let time = 0; time < 3; time++) expect(await tokens.inspect(token, 'app')).toEqual(session)
    expect(await dump(redis)).toBe(before)
    expect(await checkOf(tokens.rotate(token, session))).toBe('ok')
  })

  it('makes one call, as a refresh does', async () => {
    const { tokens } = gateway(redis)
    const session = newSession()
    const token = await tokens.open(session)
    const before = redis.calls()
    await tokens.inspect(token, 'app')
    await tokens.rotate(token, session)
    expect(redis.calls() - before).toBe(2)
  })

  it('makes no call for a malformed token [S19]', async () => {
    const { tokens } = gateway(redis)
    const before = redis.calls()
    for (const text of ['', 'x', 'A'.repeat(66), `${'A'.repeat(22)}.${'A'.repeat(42)}B`]) {
      expect(await checkOf(tokens.inspect(text, 'app'))).toBe('malformed')
      expect(await checkOf(tokens.rotate(text, newSession()))).toBe('malformed')
      await tokens.end(text)
    }
    expect(redis.calls()).toBe(before)
  })

  it('refuses an unknown token, and stores nothing', async () => {
    const { tokens } = gateway(redis)
    const unknown = `${'A'.repeat(22)}.${'A'.repeat(43)}`
    expect(await checkOf(tokens.inspect(unknown, 'app'))).toBe('unknown')
    expect(await checkOf(tokens.rotate(unknown, newSession()))).toBe('unknown')
    await tokens.end(unknown)
    expect(await redis.direct.keys('*')).toEqual([])
  })
})

describe('reuse of a refresh token', () => {
  it.each(['inspect', 'rotate'] as const)(
    'of an old generation (%s) ends the session and its access tokens [S36]',
    async (call) => {
      const { tokens } = gateway(redis)
      const session = newSession()
      const first = await tokens.open(session)
      const second = (await tokens.rotate(first, session)).refreshToken
      const third = (await tokens.rotate(second, session)).refreshToken
      const present = (token: string) =>
        checkOf(call === 'inspect' ? tokens.inspect(token, 'app') : tokens.rotate(token, session))
      expect(await present(first)).toBe('reused')
      for (const token of [first, second, third]) {
        expect(await tokens.find(token)).toMatchObject({ live: false })
        expect(await checkOf(tokens.inspect(token, 'app'))).toBe('ended')
        expect(await checkOf(tokens.rotate(token, session))).toBe('ended')
      }
      const revokeBefore = await redis.direct.get(
        await revokedBeforeKey(DEFAULT_KEYS, 'session', GATEWAY, session.id),
      )
      expect(Number(revokeBefore)).toBe(session.expiresAtSeconds)
    },
  )

  it.each([
    [GRACE_SECONDS, 'ok'],
    [GRACE_SECONDS + 0.001, 'reused'],
  ])(
    'an inspection of the previous token, %d s after the refresh, is %s [S36, S37]',
    async (seconds, check) => {
      const { tokens, clock } = gateway(redis)
      const session = newSession()
      const first = await tokens.open(session)
      await tokens.rotate(first, session)
      clock.advance(seconds)
      expect(await checkOf(tokens.inspect(first, 'app'))).toBe(check)
    },
  )
})

describe('the absolute lifetime of a session', () => {
  it('is the TTL in Redis from the start, and no refresh extends it [S39]', async () => {
    const { tokens, clock } = gateway(redis)
    const session = newSession()
    let token = await tokens.open(session)
    expect(await redis.direct.pttl(await familyKey())).toBeLessThanOrEqual(SESSION_SECONDS * 1000)
    expect(await redis.direct.ttl(await familyKey())).toBeGreaterThan(SESSION_SECONDS - 60)
    await redis.direct.expire(await familyKey(), 1_000)
    for (let time = 0; time < 5; time++) {
      clock.advance(GRACE_SECONDS * 2)
      token = (await tokens.rotate(token, session)).refreshToken
    }
    expect(await redis.direct.ttl(await familyKey())).toBeLessThanOrEqual(1_000)
  })

  it('ends by the clock of any gateway, even if Redis still has the session [S39]', async () => {
    const { tokens, clock } = gateway(redis)
    const session = newSession()
    const token = await tokens.open(session)
    clock.advance(SESSION_SECONDS - 1)
    expect(await checkOf(tokens.inspect(token, 'app'))).toBe('ok')
    clock.advance(1)
    expect(await checkOf(tokens.inspect(token, 'app'))).toBe('expired')
    expect(await checkOf(tokens.rotate(token, session))).toBe('expired')
  })

  it('ends by the clock of Redis, even for a gateway with a stopped clock [S39]', async () => {
    const { tokens } = gateway(redis)
    const session = newSession()
    const token = await tokens.open(session)
    await redis.direct.pexpire(await familyKey(), 1)
    while ((await familyKey()) !== '') await new Promise((resolve) => setTimeout(resolve, 1))
    expect(await checkOf(tokens.inspect(token, 'app'))).toBe('unknown')
    expect(await checkOf(tokens.rotate(token, session))).toBe('unknown')
  })

  it('an ended session cannot be opened', async () => {
    const session = newSession({ expiresAtSeconds: NOW_SECONDS })
    await expect(gateway(redis).tokens.open(session)).rejects.toThrow(RangeError)
    expect(await redis.direct.keys('*')).toEqual([])
  })
})

describe('a cutoff', () => {
  it.each([
    ['of the session', 'session', GATEWAY, undefined],
    ['of the client', 'client', GATEWAY, 'app'],
    ['of the tenant, by the issuer of the subject', 'tenant', IDP, 'acme'],
    ['of the tenant, by the gateway', 'tenant', GATEWAY, 'acme'],
    ['of the subject, by its issuer', 'subject', IDP, 'alice'],
    ['of the subject, by the gateway', 'subject', GATEWAY, 'alice'],
  ] as const)(
    '%s refuses the refresh, and consumes nothing [S33]',
    async (_, kind, issuer, value) => {
      const { tokens, clock } = gateway(redis)
      const session = newSession()
      const token = await tokens.open(session)
      clock.advance(100)
      const key = await revokedBeforeKey(DEFAULT_KEYS, kind, issuer, value ?? session.id)
      await redis.direct.set(key, NOW_SECONDS)
      expect(await checkOf(tokens.rotate(token, session))).toBe('cut_off')
      await redis.direct.del(key)
      expect(await checkOf(tokens.rotate(token, session))).toBe('ok')
    },
  )

  it('of another party, or from before the session, refuses nothing', async () => {
    const { tokens } = gateway(redis)
    const session = newSession()
    const token = await tokens.open(session)
    await redis.direct.set(
      await revokedBeforeKey(DEFAULT_KEYS, 'subject', GATEWAY, 'alice'),
      NOW_SECONDS - 1,
    )
    await redis.direct.set(
      await revokedBeforeKey(DEFAULT_KEYS, 'subject', 'https://other.test', 'alice'),
      NOW_SECONDS,
    )
    await redis.direct.set(await revokedBeforeKey(DEFAULT_KEYS, 'client', IDP, 'app'), NOW_SECONDS)
    await redis.direct.set(await revokedBeforeKey(DEFAULT_KEYS, 'subject', IDP, 'bob'), NOW_SECONDS)
    expect(await checkOf(tokens.rotate(token, session))).toBe('ok')
  })

  it('of the current second does not affect a session that begins after it', async () => {
    const { tokens } = gateway(redis)
    const session = newSession({ startedAtSeconds: NOW_SECONDS + 1 })
    const token = await tokens.open(session)
    await redis.direct.set(
      await revokedBeforeKey(DEFAULT_KEYS, 'subject', IDP, 'alice'),
      NOW_SECONDS,
    )
    expect((await tokens.rotate(token, session)).issuedAtSeconds).toBe(NOW_SECONDS + 1)
  })
})

describe('the end of a session', () => {
  it.each(['the current token', 'the previous token'])(
    'with %s revokes all of its tokens',
    async (which) => {
      const { tokens, clock } = gateway(redis)
      const session = newSession()
      const one = await tokens.open(session)
      const two = (await tokens.rotate(one, session)).refreshToken
      clock.advance(GRACE_SECONDS * 2)
      await tokens.end(which === 'the current token' ? two : one)
      expect(await checkOf(tokens.inspect(two, 'app'))).toBe('ended')
      expect(
        await redis.direct.exists(
          await revokedBeforeKey(DEFAULT_KEYS, 'session', GATEWAY, session.id),
        ),
      ).toBe(1)
      await tokens.end(two)
      expect(await checkOf(tokens.rotate(two, session))).toBe('ended')
    },
  )
})

it('Redis contains no refresh token and nothing that yields one [S40]', async () => {
  const { tokens } = gateway(redis)
  const secrets: string[] = []
  const remember = (text: string) => secrets.push(text, ...text.split('.'))
  for (let count = 0; count < 20; count++) {
    const session = newSession()
    let token = await tokens.open(session)
    remember(token)
    for (let use = 0; use < 3; use++) {
      const rotation = await tokens.rotate(token, session)
      const { tokenId, opaqueToken } = seededIds(rotation.seed)
      remember(rotation.refreshToken)
      secrets.push(tokenId, opaqueToken, Buffer.from(rotation.seed).toString('base64url'))
      token = rotation.refreshToken
    }
    if (count % 2 === 0) await tokens.end(token)
  }
  const stored = await dump(redis)
  expect(stored.match(/pc:refresh:/g)).toHaveLength(20)
  expect(secrets.filter((secret) => stored.includes(secret))).toEqual([])
})

it('every key has a TTL [S34]', async () => {
  const { tokens } = gateway(redis)
  const session = newSession()
  const token = await tokens.open(session)
  await tokens.rotate(token, session)
  await tokens.end(token)
  const keys = await redis.direct.keys('*')
  expect(keys).toHaveLength(3)
  for (const key of keys) expect(await redis.direct.ttl(key)).toBeGreaterThan(0)
})

it('every operation fails with Unavailable while Redis is unreachable', async () => {
  const server = await startHttpServer((_, response) => response.destroy())
  try {
    const { tokens } = gateway({ url: server.url, token: 'x' })
    const token = `${'A'.repeat(22)}.${'A'.repeat(43)}`
    const session = newSession()
    for (const attempt of [
      () => tokens.open(session),
      () => tokens.inspect(token, 'app'),
      () => tokens.rotate(token, session),
      () => tokens.end(token),
    ])
      await expect(attempt()).rejects.toBeInstanceOf(Unavailable)
  } finally {
    await server.close()
  }
})
