/** Limits of token exchanges over several isolates at once. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { DEFAULT_TOKENS, tokensOf } from '../../../src/policy/tokens.ts'
import {
  ACCESS_TOKEN,
  EXCHANGE,
  PUBLIC_URL,
  startGateway,
  type TestClient,
  type TestGateway,
} from './gateway.ts'

const CLIENT = { limit: 12, windowSeconds: 300 }
const TOKEN = { limit: 5, windowSeconds: 60 }
const ISOLATES = 4

let gateway: TestGateway
let isolates: readonly ReturnType<TestGateway['isolate']>[]
beforeAll(async () => {
  gateway = await startGateway({ exchangeLimits: { client: CLIENT, subjectToken: TOKEN } })
  isolates = Array.from({ length: ISOLATES }, () => gateway.isolate())
})
afterAll(() => gateway.close())

/** Exchanges each token once, all at the same time, spread over the isolates. */
function exchanges(client: TestClient, tokens: readonly string[]) {
  return Promise.all(
    tokens.map(async (token, index) => {
      const reply = await isolates[index % ISOLATES]?.request(`${PUBLIC_URL}/oauth/token`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/x-www-form-urlencoded',
          'CF-Connecting-IP': '192.0.2.1',
        },
        body: new URLSearchParams({
          client_id: client.id,
          client_secret: client.secret,
          grant_type: EXCHANGE,
          subject_token: token,
          subject_token_type: ACCESS_TOKEN,
        }).toString(),
      })
      if (reply === undefined) throw new Error('there is no isolate at this index')
      const body: Record<string, unknown> = JSON.parse(await reply.text())
      return { status: reply.status, retryAfter: Number(reply.headers.get('Retry-After')), body }
    }),
  )
}

const families = async () => (await gateway.redis.direct.keys('pc:*refresh:*')).length
const statuses = (replies: readonly { status: number }[], status: number) =>
  replies.filter((reply) => reply.status === status).length
const repeated = (token: string, times: number) => Array.from({ length: times }, () => token)

describe('exchanges of one subject token [S71]', () => {
  test.each(['jwt', 'opaque'] as const)(
    'are limited by the policy over all isolates and clients (%s)',
    async (tokenFormat) => {
      const client = await gateway.createClient()
      const broker = await gateway.createClient({ grants: [EXCHANGE], tokenFormat })
      const login = await gateway.login()
      const token = (await gateway.exchange(broker, login)).body.access_token
      const before = { families: await families(), origin: gateway.originCalls() }
      const replies = await exchanges(client, repeated(token, 40))
      expect(statuses(replies, 200)).toBe(TOKEN.limit)
      expect(statuses(replies, 429)).toBe(40 - TOKEN.limit)
      expect(await families()).toBe(before.families + TOKEN.limit)
      for (const { status, retryAfter, body } of replies) {
        if (status === 200) continue
        expect(body).toEqual({
          error: 'temporarily_unavailable',
          error_description: expect.any(String),
        })
        expect(retryAfter).toBeGreaterThan(0)
        expect(retryAfter).toBeLessThanOrEqual(TOKEN.windowSeconds)
      }
      const reason = 'rate_limited:exchange_subject_token'
      const refused = gateway.events.filter((event) => event.reason === reason)
      expect(refused.length).toBeGreaterThanOrEqual(40 - TOKEN.limit)
      expect(refused.at(-1)).toMatchObject({ decision: 'deny', status: 429 })
      expect(gateway.originCalls()).toBe(before.origin)

      const other = await gateway.createClient()
      expect(statuses(await exchanges(other, [token]), 429)).toBe(1)
      expect(statuses(await exchanges(other, [await gateway.login()]), 200)).toBe(1)
    },
  )

  test('do not count against the client when they are refused', async () => {
    const client = await gateway.createClient()
    await exchanges(client, repeated(await gateway.login(), 40))
    const others = await Promise.all(repeated('', CLIENT.limit).map(() => gateway.login()))
    const replies = await exchanges(client, others)
    expect(statuses(replies, 200)).toBe(CLIENT.limit - TOKEN.limit)
  })

  test('are permitted again in a new window', async () => {
    const client = await gateway.createClient()
    const token = await gateway.login()
    await exchanges(client, repeated(token, 10))
    const keys = await gateway.redis.direct.keys('pc:exchanges:*')
    for (const key of keys) {
      const ttl = await gateway.redis.direct.ttl(key)
      expect(ttl).toBeGreaterThan(0)
      expect(ttl).toBeLessThanOrEqual(CLIENT.windowSeconds)
    }
    await gateway.redis.direct.del(keys)
    expect(statuses(await exchanges(client, [token]), 200)).toBe(1)
  })

  test('are counted by the content of a token that has no id', async () => {
    const client = await gateway.createClient()
    const [one, other] = [crypto.randomUUID(), crypto.randomUUID()]
    const login = (sub: string) => gateway.login({ claims: { jti: undefined, sub } })
    expect(statuses(await exchanges(client, repeated(await login(one), 9)), 200)).toBe(TOKEN.limit)
    expect(statuses(await exchanges(client, [await login(other)]), 200)).toBe(1)
  })
})

describe('exchanges of one client [S71]', () => {
  test('are limited by the policy over all isolates and tokens', async () => {
    const client = await gateway.createClient()
    const before = await families()
    const tokens = await Promise.all(repeated('', 30).map(() => gateway.login()))
    const replies = await exchanges(client, tokens)
    expect(statuses(replies, 200)).toBe(CLIENT.limit)
    expect(statuses(replies, 429)).toBe(30 - CLIENT.limit)
    expect(await families()).toBe(before + CLIENT.limit)
    expect(gateway.events.map(({ reason }) => reason)).toContain('rate_limited:exchange_client')
    const refused = replies.find(({ status }) => status === 429)
    expect(refused?.retryAfter).toBeGreaterThan(TOKEN.windowSeconds)
    expect(refused?.retryAfter).toBeLessThanOrEqual(CLIENT.windowSeconds)
    const next = await exchanges(await gateway.createClient(), tokens.slice(0, 1))
    expect(statuses(next, 200)).toBe(1)
  })

  test('are counted in the call that reads the subject token', async () => {
    const client = await gateway.createClient()
    const token = await gateway.login()
    await gateway.exchange(client, token)
    const calls: number[] = []
    for (let count = 1; count < TOKEN.limit + 2; count++) {
      const before = gateway.redis.calls()
      await gateway.exchange(client, token)
      calls.push(gateway.redis.calls() - before)
    }
    // The calls of one exchange: client, subject token, refresh family. A refused one has no
    // family.
    expect(calls).toEqual([3, 3, 3, 3, 2, 2])
  })

  test.each(['client', 'token'] as const)(
    'get 503 if the counter of the %s is unreadable',
    async (which) => {
      const client = await gateway.createClient()
      const token = await gateway.login()
      const old = new Set(await gateway.redis.direct.keys(`pc:exchanges:${which}:*`))
      await gateway.exchange(client, token)
      const all = await gateway.redis.direct.keys(`pc:exchanges:${which}:*`)
      const [key = ''] = all.filter((name) => !old.has(name))
      for (const write of ['set', 'lpush'] as const) {
        await gateway.redis.direct.del(key)
        await gateway.redis.direct.call(write, key, 'x')
        const before = await families()
        const reply = await gateway.exchange(client, token)
        expect(reply.status).toBe(503)
        expect(await families()).toBe(before)
      }
    },
  )
})

describe('exchangeLimits in a policy', () => {
  const define = (exchangeLimits: object) => () =>
    definePolicy({
      roles: {},
      limits: {},
      routes: [{ method: 'GET', path: '/a', permission: 'a:b' }],
      features: [authorizationServer()],
      tokens: { exchangeLimits },
    })

  test('have defaults, and each can be set alone', () => {
    expect(tokensOf()).toEqual(DEFAULT_TOKENS)
    expect(define({ client: CLIENT })().tokens.exchangeLimits).toEqual({
      ...DEFAULT_TOKENS.exchangeLimits,
      client: CLIENT,
    })
  })

  test.each([
    { client: { limit: 0, windowSeconds: 1 } },
    { client: { limit: 1 } },
    { subjectToken: { limit: 1, windowSeconds: 86_401 } },
    { subjectToken: { limit: 1.5, windowSeconds: 1 } },
    { subject: TOKEN },
    { client: false },
  ])('%j is refused', (limits) => {
    expect(define(limits)).toThrow(/tokens\.exchangeLimits/)
  })
})
