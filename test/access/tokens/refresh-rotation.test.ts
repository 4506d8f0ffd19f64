import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { revokedBeforeKey } from '../../../src/access/revocation/revocation.ts'
import type { Session } from '../../../src/access/tokens/refresh-family.ts'
import type { RefreshTokens } from '../../../src/access/tokens/refresh-tokens.ts'
import { Unavailable } from '../../../src/errors.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { startHttpServer } from '../../harness/http-server.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { GATEWAY } from './issuing.ts'
import {
  checkOf,
  dump,
  GRACE_SECONDS,
  gateway,
  MAX_ACCESS_TOKEN_SECONDS,
  newClock,
  newSession,
} from './refreshing.ts'
import { NOW_SECONDS } from './signer.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
beforeEach(async () => {
  await redis.direct.flushall()
})
afterAll(() => redis.close())

describe('parallel refreshes', () => {
  it('50 with one token, at two gateways, all get the same successor, in every round [S35]', async () => {
    const clock = newClock()
    const gateways = [gateway(redis, { clock }), gateway(redis, { clock })]
    const session = newSession()
    let current = (await gateways[0]?.tokens.open(session)) ?? ''
    const seen = new Set([current])
    for (let round = 0; round < 20; round++) {
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          gateways[index % 2]?.tokens.rotate(current, session),
        ),
      )
      const [first, ...others] = answers
      if (first === undefined) throw new Error('unreachable')
      for (const other of others) expect(other).toEqual(first)
      current = first.refreshToken
      seen.add(current)
      clock.advance(1)
    }
    expect(seen.size).toBe(21)
    expect(await redis.direct.keys('pc:cutoff:*')).toEqual([])
    expect(await checkOf(gateways[1]?.tokens.inspect(current, 'app') ?? Promise.reject())).toBe(
      'ok',
    )
  })

  it('50 that keep the token all get it back, with 50 seeds', async () => {
    const clock = newClock()
    const gateways = [gateway(redis, { clock }), gateway(redis, { clock })]
    const session = newSession()
    const token = (await gateways[0]?.tokens.open(session)) ?? ''
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        gateways[index % 2]?.tokens.rotate(token, session, { keepsToken: true }),
      ),
    )
    expect(new Set(answers.map((answer) => answer?.refreshToken))).toEqual(new Set([token]))
    expect(new Set(answers.map((answer) => answer?.seed.toString())).size).toBe(50)
    clock.advance(GRACE_SECONDS + 1)
    const later = await gateways[1]?.tokens.rotate(token, session, { keepsToken: true })
    expect(later?.refreshToken).toBe(token)
  })

  it('a client that keeps tokens from now on gets the successor of a token that was used before', async () => {
    const { tokens, clock } = gateway(redis)
    const session = newSession()
    const token = await tokens.open(session)
    const { refreshToken } = await tokens.rotate(token, session)
    const retried = await tokens.rotate(token, session, { keepsToken: true })
    expect(retried.refreshToken).toBe(refreshToken)
    clock.advance(GRACE_SECONDS + 1)
    const kept = await tokens.rotate(refreshToken, session, { keepsToken: true })
    expect(kept.refreshToken).toBe(refreshToken)
    expect(await checkOf(tokens.rotate(token, session, { keepsToken: true }))).toBe('reused')
    expect(await checkOf(tokens.rotate(refreshToken, session, { keepsToken: true }))).toBe('ended')
  })

  it('50 with one token after the grace period all fail [S35]', async () => {
    const { tokens, clock } = gateway(redis)
    const session = newSession()
    const token = await tokens.open(session)
    const next = await tokens.rotate(token, session)
    clock.advance(GRACE_SECONDS + 1)
    const checks = await Promise.all(
      Array.from({ length: 50 }, () => checkOf(tokens.rotate(token, session))),
    )
    expect(checks.filter((check) => check === 'reused')).toHaveLength(1)
    expect(checks.filter((check) => check === 'ended')).toHaveLength(49)
    expect(await checkOf(tokens.rotate(next.refreshToken, session))).toBe('ended')
  })

  it('with a token and its successor at the same time never fork the family [S35]', async () => {
    const { tokens } = gateway(redis)
    for (let round = 0; round < 20; round++) {
      const session = newSession()
      const token = await tokens.open(session)
      const next = await tokens.rotate(token, session)
      const [after, again] = await Promise.allSettled([
        tokens.rotate(next.refreshToken, session),
        tokens.rotate(token, session),
      ])
      // The retry came first and got the same result, or second and ended the session.
      expect(after.status).toBe('fulfilled')
      if (again.status === 'fulfilled') expect(again.value).toEqual(next)
      else expect(await checkOf(tokens.inspect(next.refreshToken, 'app'))).toBe('ended')
    }
  })
})

describe('reuse of a refresh token', () => {
  const use = (
    tokens: RefreshTokens,
    act: 'rotate' | 'inspect',
    token: string,
    session: Session,
  ): Promise<unknown> =>
    act === 'rotate' ? tokens.rotate(token, session) : tokens.inspect(token, session.grant.client)

  it('by another client is refused, and does not end the session [S38]', async () => {
    const { tokens } = gateway(redis)
    const session = newSession()
    const one = await tokens.open(session)
    const two = (await tokens.rotate(one, session)).refreshToken
    const three = (await tokens.rotate(two, session)).refreshToken
    const before = await dump(redis)
    for (const token of [one, two, three, `${one.slice(0, 22)}.${'A'.repeat(43)}`])
      expect(await checkOf(tokens.inspect(token, 'another app'))).toBe('of_another_client')
    expect(await dump(redis)).toBe(before)
    expect(await checkOf(tokens.rotate(three, session))).toBe('ok')
  })

  it('is detected by an inspection, which changes nothing [S38]', async () => {
    const { tokens } = gateway(redis)
    const session = newSession()
    const one = await tokens.open(session)
    const two = (await tokens.rotate(one, session)).refreshToken
    const three = (await tokens.rotate(two, session)).refreshToken
    const before = await dump(redis)
    expect(await tokens.find(one)).toEqual({ session, live: false })
    expect(await tokens.find(two)).toEqual({ session, live: true })
    expect(await tokens.find(three)).toEqual({ session, live: true })
    for (const nobodys of ['x', `${'A'.repeat(22)}.${'A'.repeat(43)}`])
      expect(await tokens.find(nobodys)).toBeUndefined()
    expect(await dump(redis)).toBe(before)
    expect(await checkOf(tokens.rotate(three, session))).toBe('ok')
    await tokens.end(three)
    expect(await tokens.find(three)).toMatchObject({ live: false })
  })

  it.each(['rotate', 'inspect'] as const)(
    'R1, R2, R3 and R1 again (%s) ends the family, R3 included, and its access tokens [S36]',
    async (act) => {
      const { tokens } = gateway(redis)
      const other = gateway(redis).tokens
      const session = newSession()
      const one = await tokens.open(session)
      const two = (await tokens.rotate(one, session)).refreshToken
      const three = (await tokens.rotate(two, session)).refreshToken
      expect(await checkOf(use(other, act, one, session))).toBe('reused')
      for (const token of [one, two, three]) {
        expect(await checkOf(tokens.inspect(token, 'app'))).toBe('ended')
        expect(await checkOf(tokens.rotate(token, session))).toBe('ended')
      }
      const revokeBefore = await revokedBeforeKey(DEFAULT_KEYS, 'session', GATEWAY, session.id)
      expect(Number(await redis.direct.get(revokeBefore))).toBeGreaterThan(NOW_SECONDS)
      expect(await redis.direct.ttl(revokeBefore)).toBeGreaterThanOrEqual(MAX_ACCESS_TOKEN_SECONDS)
    },
  )

  it.each(['rotate', 'inspect'] as const)(
    'includes an invented secret of a known family (%s) [S36]',
    async (act) => {
      const { tokens } = gateway(redis)
      const session = newSession()
      const token = await tokens.open(session)
      expect(
        await checkOf(use(tokens, act, `${token.slice(0, 22)}.${'A'.repeat(43)}`, session)),
      ).toBe('reused')
      expect(await checkOf(tokens.rotate(token, session))).toBe('ended')
    },
  )

  it('revokes an access token that a gateway with a fast clock issued as well [S36]', async () => {
    const slow = gateway(redis)
    const fast = gateway(redis)
    fast.clock.advance(30)
    const session = newSession()
    const token = await slow.tokens.open(session)
    const next = await fast.tokens.rotate(token, session)
    await slow.tokens.end(next.refreshToken)
    const revokeBefore = await redis.direct.get(
      await revokedBeforeKey(DEFAULT_KEYS, 'session', GATEWAY, session.id),
    )
    expect(Number(revokeBefore)).toBeGreaterThanOrEqual(next.issuedAtSeconds)
  })

  it('does not affect other sessions of the same subject and client', async () => {
    const { tokens } = gateway(redis)
    const [session, other] = [newSession(), newSession()]
    const [token, otherToken] = [await tokens.open(session), await tokens.open(other)]
    await tokens.end(token)
    expect(await checkOf(tokens.rotate(otherToken, other))).toBe('ok')
  })
})

describe('a retried refresh', () => {
  it('within the grace period gets the same result at any gateway [S37]', async () => {
    const [one, two] = [gateway(redis), gateway(redis)]
    const session = newSession()
    const token = await one.tokens.open(session)
    const rotation = await one.tokens.rotate(token, session)
    two.clock.advance(GRACE_SECONDS)
    expect(await two.tokens.inspect(token, 'app')).toEqual(session)
    expect(await two.tokens.rotate(token, session)).toEqual(rotation)
    expect(rotation.issuedAtSeconds).toBe(NOW_SECONDS)
    expect(await checkOf(two.tokens.rotate(rotation.refreshToken, session))).toBe('ok')
  })

  it('after the grace period is reuse [S37]', async () => {
    const { tokens, clock } = gateway(redis)
    const session = newSession()
    const token = await tokens.open(session)
    await tokens.rotate(token, session)
    clock.nowMs += GRACE_SECONDS * 1000 + 1
    expect(await checkOf(tokens.rotate(token, session))).toBe('reused')
  })

  it('succeeds if the first response was lost between Redis and the gateway [S37]', async () => {
    const upstream = redis.url
    let answers = false
    const proxy = await startHttpServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const answer = await fetch(`${upstream}${request.url}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${redis.token}`, 'content-type': 'application/json' },
        body: Buffer.concat(chunks),
      })
      const body = Buffer.from(await answer.arrayBuffer())
      if (answers) response.end(body)
      else response.destroy()
    })
    try {
      const { tokens } = gateway({ url: proxy.url, token: redis.token }, { graceSeconds: 0 })
      const session = newSession()
      const token = await gateway(redis).tokens.open(session)
      await expect(tokens.rotate(token, session)).rejects.toBeInstanceOf(Unavailable)
      answers = true
      const rotation = await tokens.rotate(token, session)
      expect(await checkOf(tokens.inspect(rotation.refreshToken, 'app'))).toBe('ok')
    } finally {
      await proxy.close()
    }
  })
})
