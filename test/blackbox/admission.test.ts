import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { afterAll, afterEach, describe, expect, inject, test, vi } from 'vitest'
import { fromAddress, newAddress } from '../harness/address.ts'
import {
  bodiesOfRequests,
  callsOfRequests,
  forget,
  recordsOf,
  setMode,
} from '../harness/control.ts'
import { ISSUER, mint } from '../harness/issuer.ts'
import { NEVER } from '../harness/never.ts'
import { recovered } from '../harness/recovery.ts'
import { keysOf } from '../harness/stack-redis.ts'
import { awayFromWindowEnd } from './window-end.ts'

const stack = inject('stack')
const [here, there] = stack.gateways
const redis = keysOf(stack)
/** Longer than the time after which a body needs a second admission. */
const LONGER_THAN_PROMPT_MS = 1_200
/** Of a call of a gateway to Redis. */
const DEADLINE_MS = Number(stack.env.REDIS_TIMEOUT_MS)
const PATIENCE = { timeout: 20_000, interval: 100 }

const bearer = (value: string) => ({ authorization: `Bearer ${value}` })
const get = (url: string, token: string) => fetch(`${url}/orders`, { headers: bearer(token) })
const redisCalls = () => callsOfRequests(stack.rest)
/** An empty list, or what was sent to Redis. */
const redisBodies = () => bodiesOfRequests(stack.rest)
const originCalls = async () => (await recordsOf(stack.origin)).length

/** Writes what an operator's revocation writes. */
async function revoke(jti: string) {
  const hash = createHash('sha256')
    .update(JSON.stringify([ISSUER, jti]))
    .digest('base64url')
  await redis.setFact(`pc:revoked:${hash}`)
}

afterEach(async () => {
  await setMode(stack.rest, 'serve')
  await forget(stack.rest)
  await forget(stack.origin)
})
afterAll(() => redis.disconnect())

describe('round trips', () => {
  test('an admitted request with cached keys makes exactly one call to the REST endpoint', async () => {
    const token = await mint(stack.inlineKey)
    await get(here, token)
    await forget(stack.rest)
    for (let count = 1; count <= 5; count++) {
      expect((await get(here, token)).status).toBe(200)
      expect(await redisCalls()).toBe(count)
    }
    const [call] = await recordsOf(stack.rest)
    expect(call?.url).toBe('/pipeline')
  })

  test('a request under two limits also makes exactly one call', async () => {
    const token = await mint(stack.inlineKey, { claims: { roles: ['admin'] } })
    const report = () =>
      fetch(`${here}/reports`, {
        method: 'POST',
        headers: { ...bearer(token), 'content-type': 'application/json' },
        body: '{"from":"2026-01-01","to":"2026-01-31"}',
      })
    await report()
    await forget(stack.rest)
    const response = await report()
    expect(response.status).toBe(200)
    expect(response.headers.get('ratelimit-policy')).toBe(
      '"standard";q=100;w=60, "expensive";q=30;w=60',
    )
    expect(response.headers.get('ratelimit')).toMatch(/^"expensive";r=28;t=\d+$/)
    expect(await redisCalls()).toBe(1)
  })

  test('a token cached as revoked makes none', async () => {
    const jti = crypto.randomUUID()
    const token = await mint(stack.inlineKey, { claims: { jti } })
    await revoke(jti)
    expect((await get(here, token)).status).toBe(401)
    await forget(stack.rest)
    for (let count = 0; count < 5; count++) expect((await get(here, token)).status).toBe(401)
    expect(await redisBodies()).toEqual([])
    expect(await originCalls()).toBe(0)
  })

  test('an unknown route and an ambiguous path make none', async () => {
    await fetch(`${here}/nowhere`)
    await fetch(`${here}/a%2fb`)
    expect(await redisBodies()).toEqual([])
  })

  test('a refused token makes two behind the response: one for the failure, one for the violation', async () => {
    const refuse = () =>
      fetch(`${here}/orders`, {
        headers: { ...bearer('not.a.token'), ...fromAddress(newAddress()) },
      })
    const counts = async (kind: string) => {
      const calls = await recordsOf(stack.rest)
      return calls.filter(({ body }) => body.includes(`pc:${kind}:`)).length
    }
    for (let sent = 0; sent < 2; sent++) expect((await refuse()).status).toBe(401)
    await vi.waitFor(async () => {
      expect(await counts('authentication-failures')).toBeGreaterThanOrEqual(2)
      expect(await counts('violations')).toBeGreaterThanOrEqual(2)
    }, PATIENCE)
    expect(await redisBodies()).toEqual([])
    expect(await originCalls()).toBe(0)
  })

  test('a request over an exhausted limit makes none', async () => {
    await awayFromWindowEnd()
    const token = await mint(stack.inlineKey, { claims: { roles: ['admin'] } })
    const report = () =>
      fetch(`${here}/reports`, {
        method: 'POST',
        headers: { ...bearer(token), 'content-type': 'application/json' },
        body: '{"from":"2026-01-01","to":"2026-01-31"}',
      })
    for (let count = 0; count < 31; count++) await report()
    await forget(stack.rest)
    await forget(stack.origin)
    const refused = await report()
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ code: 'rate_limited' })
    expect(refused.headers.get('ratelimit')).toMatch(/^"expensive";r=0;t=\d+$/)
    const resetSeconds = Number(/t=(\d+)/.exec(refused.headers.get('ratelimit') ?? '')?.[1])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(resetSeconds)
    expect(await redisBodies()).toEqual([])
    expect(await originCalls()).toBe(0)
  })
})

describe('two gateways on one Redis', () => {
  test('of 200 concurrent requests at a limit of 30, exactly 30 reach the origin [R15]', async () => {
    await awayFromWindowEnd()
    const token = await mint(stack.inlineKey, { claims: { roles: ['admin'] } })
    const counts: Record<string, number> = {}
    await forget(stack.rest)
    const sentMs = Date.now()
    await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const response = await fetch(`${index % 2 ? here : there}/reports`, {
          method: 'POST',
          headers: { ...bearer(token), 'content-type': 'application/json' },
          body: '{"from":"2026-01-01","to":"2026-01-31"}',
        })
        const text = await response.text()
        const code = response.ok ? '' : (/"code":"(\w+)"/.exec(text)?.[1] ?? text)
        const outcome = `${response.status} ${code}`.trim()
        counts[outcome] = (counts[outcome] ?? 0) + 1
      }),
    )
    const { 200: admitted = 0, '429 rate_limited': refused = 0, ...others } = counts
    const { '503 dependency_unavailable': late = 0, ...unknown } = others
    const text = JSON.stringify(counts)
    expect(unknown).toEqual({})
    expect(admitted + refused + late, text).toBe(200)
    expect(await originCalls()).toBe(admitted)
    expect(admitted, NEVER).toBeLessThanOrEqual(30)
    // The REST server of this stack can answer the last calls of a burst after the deadline of a gateway, which then
    // closes the call. The unit of such a call may be taken, but its request is never admitted.
    const left = await vi.waitFor(async () => {
      const calls = await recordsOf(stack.rest)
      const ended = calls.filter(({ endedMs = 0 }) => endedMs - sentMs >= DEADLINE_MS)
      // After five such calls, a gateway makes none.
      const unsent = ended.length < 5 ? 0 : Math.max(0, 200 - calls.length)
      expect(late, text).toBeLessThanOrEqual(ended.length + unsent)
      return calls.filter(({ hasLeft }) => hasLeft)
    }, PATIENCE)
    // Without such a call, each request is decided. A gateway has waited its whole deadline for each.
    expect(admitted + late, text).toBeGreaterThanOrEqual(30)
    if (late === 0) expect([admitted, refused]).toEqual([30, 170])
    for (const { endedMs = 0 } of left) expect(endedMs - sentMs).toBeGreaterThanOrEqual(DEADLINE_MS)
  })

  test('a revoked token is refused by both on the next request [S30]', async () => {
    const jti = crypto.randomUUID()
    const token = await mint(stack.inlineKey, { claims: { jti } })
    expect((await get(here, token)).status).toBe(200)
    expect((await get(there, token)).status).toBe(200)
    await revoke(jti)
    await forget(stack.origin)
    expect((await get(here, token)).status).toBe(401)
    expect((await get(there, token)).status).toBe(401)
    expect(await originCalls()).toBe(0)
  })

  test('a revocation of one jti affects no other, however similar it is spelled [S32]', async () => {
    const jti = `a:b*${crypto.randomUUID()}`
    await revoke(jti)
    const refused = await mint(stack.inlineKey, { claims: { jti } })
    expect((await get(here, refused)).status).toBe(401)
    for (const other of [`${jti} `, jti.toUpperCase(), 'a:b*', '*', undefined]) {
      const token = await mint(stack.inlineKey, { claims: { jti: other } })
      expect((await get(here, token)).status, String(other)).toBe(200)
    }
  })
})

test('a request does not reach the origin if its token is revoked before its body ends [S30]', async () => {
  const jti = crypto.randomUUID()
  const token = await mint(stack.inlineKey, { claims: { jti, roles: ['admin'] } })
  await forget(stack.rest)
  const body = '{"from":"2026-01-01","to":"2026-01-31"}'
  const headers = { ...bearer(token), 'content-type': 'application/json' }
  const sent = request(`${here}/reports`, {
    method: 'POST',
    headers: { ...headers, 'content-length': body.length },
  })
  const status = new Promise<number | undefined>((resolve, reject) => {
    sent.on('error', reject).on('response', (answer) => resolve(answer.resume().statusCode))
  })
  sent.write(body.slice(0, 1))
  // The request was admitted.
  await expect.poll(redisCalls, PATIENCE).toBe(1)
  await revoke(jti)
  await new Promise((done) => setTimeout(done, LONGER_THAN_PROMPT_MS))
  sent.end(body.slice(1))
  expect(await status).toBe(401)
  expect(await originCalls()).toBe(0)
})

describe('without Redis', () => {
  afterEach(async () => {
    await setMode(stack.rest, 'serve')
    await recovered(stack, stack.gateways)
  })

  test.each(['refuse', 'hang', 'error'] as const)(
    '%s: 503 with Retry-After, no request at the origin, no details; then 200 again [R01, R02, R05]',
    async (mode) => {
      const token = await mint(stack.inlineKey)
      expect((await get(here, token)).status).toBe(200)
      await forget(stack.origin)
      await setMode(stack.rest, mode)
      const responses = await Promise.all(Array.from({ length: 10 }, () => get(here, token)))
      for (const response of responses) {
        expect(response.status).toBe(503)
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
        const text = await response.text()
        expect(JSON.parse(text)).toMatchObject({ code: 'dependency_unavailable' })
        expect(text).not.toMatch(/redis|upstash|secret|pipeline|127\.0\.0\.1/i)
      }
      expect(await originCalls()).toBe(0)
      await setMode(stack.rest, 'serve')
      await recovered(stack, [here])
      expect((await get(here, token)).status).toBe(200)
    },
  )

  test('a bad token stays 401 and liveness stays 200, because neither calls Redis', async () => {
    await setMode(stack.rest, 'refuse')
    expect((await get(here, 'not.a.token')).status).toBe(401)
    expect((await fetch(`${here}/-/healthz`)).status).toBe(200)
  })

  test('a public route is 503 too, because its limit says deny', async () => {
    await setMode(stack.rest, 'refuse')
    expect((await fetch(`${here}/public/ping`)).status).toBe(503)
    expect(await originCalls()).toBe(0)
  })
})
