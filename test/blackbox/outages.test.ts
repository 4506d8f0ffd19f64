/** A gateway in real workerd. TCP proxies before its Redis and its origin inject faults. */
import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import { type FaultProxy, startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { addressBanKey } from '../../src/access/abuse/ban.ts'
import { revokedBeforeKey } from '../../src/access/revocation/revocation.ts'
import { DEFAULT_FAILURES } from '../../src/isolate/circuit-breaker.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { fromAddress, newAddress } from '../harness/address.ts'
import { connectedStatus } from '../harness/connected.ts'
import { type FurtherGateway, startFurther } from '../harness/further-gateway.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { ISSUER, mint } from '../harness/issuer.ts'
import { NEVER } from '../harness/never.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { FAULTS, RUBBISH } from '../isolate/rubbish.ts'

const stack = inject('stack')
/** Longer than a breaker stays open, on a busy machine. */
const RECOVERY = { timeout: 20_000, interval: 200 }
/** Longer than a healthy Redis needs on a busy machine. An outage is detected after it. */
const DEADLINE_MS = 700
/** The requests that the policy admits for a subject in a minute. */
const STANDARD_LIMIT = 100
const WINDOW_MS = 60_000

let redis: TestRedis
let toRedis: FaultProxy
let origin: TestServer
let toOrigin: FaultProxy
let gateway: FurtherGateway
let url: string
/** The subjects of the requests that reached the origin. */
const reached: string[] = []

const portOf = (base: string) => Number(new URL(base).port)
const before = (base: string) =>
  startFaultProxy({ target: { host: '127.0.0.1', port: portOf(base) } })

beforeAll(async () => {
  redis = await startTestRedis()
  toRedis = await before(redis.url)
  origin = await startHttpServer((request, response) => {
    reached.push(String(request.headers['x-auth-subject'] ?? 'anonymous'))
    request.resume().on('end', () => response.end('[]'))
  })
  toOrigin = await before(origin.url)
  const vars = {
    UPSTASH_REDIS_REST_URL: toRedis.url,
    REDIS_TIMEOUT_MS: String(DEADLINE_MS),
    UPSTASH_REDIS_REST_TOKEN: redis.token,
    ORIGIN_URL: toOrigin.url,
  }
  gateway = await startFurther(stack, { vars })
  url = gateway.url
})
afterAll(async () => {
  await gateway?.stop()
  await Promise.all([toRedis?.close(), toOrigin?.close()])
  await Promise.all([redis?.close(), origin?.close()])
})
afterEach(async () => {
  await toRedis.set({ kind: 'none' })
  await toOrigin.set({ kind: 'none' })
  await recovered(await newCaller())
  reached.length = 0
})

interface Caller {
  readonly token: string
  readonly subject: string
  readonly address: string
}

async function newCaller(address = newAddress()): Promise<Caller & { readonly jti: string }> {
  const [subject, jti] = [`caller-${crypto.randomUUID()}`, crypto.randomUUID()]
  const token = await mint(stack.inlineKey, { claims: { sub: subject, jti, roles: ['writer'] } })
  return { token, subject, address, jti }
}

async function send({ token, address }: Caller, path = '/orders', init: RequestInit = {}) {
  const response = await fetch(url + path, {
    ...init,
    headers: { authorization: `Bearer ${token}`, ...fromAddress(address) },
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}
const statusOf = async (caller: Caller) => (await send(caller)).status
/** Waits until the outage has ended. Only `outage` is repeated: every other status fails the test. */
const recovered = async (caller: Caller, outage = 503) =>
  expect(
    await connectedStatus(() => statusOf(caller), { outage, patienceMs: RECOVERY.timeout }),
  ).toBe(200)

/**
 * Creates one permitted caller and four others: revoked, before a cutoff, banned, out of budget.
 */
async function cast() {
  const nowSeconds = Math.floor(Date.now() / 1000)
  const [good, revoked, revokedBefore, spent] = await Promise.all(
    Array.from({ length: 4 }, () => newCaller()),
  )
  if (!good || !revoked || !revokedBefore || !spent) throw new Error('no callers were created')
  const [third = 0, fourth = 0] = crypto.getRandomValues(new Uint8Array(2))
  const banned = await newCaller(`198.18.${third}.${fourth}`)
  const hash = createHash('sha256')
    .update(JSON.stringify([ISSUER, revoked.jti]))
    .digest('base64url')
  await redis.direct
    .multi()
    .set(`pc:revoked:${hash}`, '1', 'EX', 600)
    .set(
      await revokedBeforeKey(DEFAULT_KEYS, 'subject', ISSUER, revokedBefore.subject),
      nowSeconds + 5,
      'EX',
      600,
    )
    .set(await addressBanKey(DEFAULT_KEYS, banned.address), nowSeconds + 600, 'EX', 600)
    .exec()
  return { good, spent, refused: [revoked, revokedBefore, banned] }
}

const wire = RUBBISH.filter(([name]) =>
  /empty body|HTML|bare nulls|objects|gzip|packed page|announced|chunk|UTF-8|redirect|no content/.test(
    name,
  ),
)
const flapping: [string, Fault] = [
  'a flapping connection',
  { kind: 'flap', upMs: 400, downMs: 400 },
]

/** Returns whether Redis still answers well within the deadline, so that no caller notices. */
const isHarmless = (fault: Fault) => fault.kind === 'latency' && fault.ms < DEADLINE_MS / 2
/** Returns whether some replies arrive in time and some do not. */
const isMixed = (fault: Fault) =>
  fault.kind === 'flap' || (fault.kind === 'latency' && fault.ms > DEADLINE_MS / 2)

describe('a Redis behind a faulty network', () => {
  const ROUNDS = 3

  test.each<readonly [string, Fault]>([...FAULTS, flapping, ...wire])(
    '%s: only permitted callers are served, all or none as the fault implies, and all of them afterwards [R01, R02, R03, R04, R05, R06, R32]',
    async (_, fault) => {
      const { good, refused } = await cast()
      await toRedis.set(fault)
      const counts = { served: 0, unavailable: 0 }
      for (let round = 0; round < ROUNDS; round++) {
        const statuses = await Promise.all(refused.map(statusOf))
        const permitted = isHarmless(fault) ? [401, 403] : [401, 403, 503]
        for (const status of statuses) expect(permitted, NEVER).toContain(status)
        const status = await statusOf(good)
        if (status === 200) counts.served += 1
        if (status === 503) counts.unavailable += 1
      }
      if (isHarmless(fault)) expect(counts).toEqual({ served: ROUNDS, unavailable: 0 })
      else if (isMixed(fault)) expect(counts.served + counts.unavailable).toBe(ROUNDS)
      else expect(counts).toEqual({ served: 0, unavailable: ROUNDS })
      await toRedis.set({ kind: 'none' })
      await recovered(good)
      for (const caller of refused) expect([401, 403]).toContain(await statusOf(caller))
      expect(new Set(reached), NEVER).toEqual(new Set([good.subject]))
    },
  )

  test('a limit admits no more while Redis flaps [R01, R15]', async () => {
    const { spent } = await cast()
    const window = () => Math.floor(Date.now() / WINDOW_MS)
    const leftMs = WINDOW_MS - (Date.now() % WINDOW_MS)
    if (leftMs < WINDOW_MS / 3) await new Promise((done) => setTimeout(done, leftMs))
    const firstWindow = window()
    const AT_ONCE = 20
    const counts = new Map<number, number>()
    const count = async () => {
      const status = await statusOf(spent)
      counts.set(status, (counts.get(status) ?? 0) + 1)
      return status
    }
    for (let round = 0; round < 12; round++) {
      const isDown = round % 3 === 2
      await toRedis.set(isDown ? { kind: 'reset', afterBytes: 0 } : { kind: 'none' })
      if (!isDown) expect([200, 429]).toContain(await connectedStatus(count))
      const statuses = await Promise.all(Array.from({ length: AT_ONCE }, count))
      // While Redis is down, only cached refusals are answered: the limit was reached.
      expect(statuses).not.toContain(isDown ? 200 : 503)
    }
    const admitted = counts.get(200) ?? 0
    // On a slow machine another window may have begun.
    expect(admitted, NEVER).toBeLessThanOrEqual(STANDARD_LIMIT * (1 + window() - firstWindow))
    expect(admitted).toBe(reached.length)
    expect(counts.get(429) ?? 0).toBeGreaterThan(0)
    expect([...counts.keys()].sort()).toEqual([200, 429, 503])
  })

  test('while Redis is down only probes are sent to it, and afterwards one call for each request [R02]', async () => {
    const { good } = await cast()
    await recovered(good)
    await toRedis.set({ kind: 'refuse' })
    for (let count = 0; count < DEFAULT_FAILURES; count++) expect(await statusOf(good)).toBe(503)
    const answer = await send(good)
    expect(answer.status).toBe(503)
    // An open breaker reports its remaining time; a failed call reports five seconds.
    expect(answer.headers.get('retry-after')).toMatch(/^[1-4]$/)
    // Redis is back, but the breaker is still open: a refused request has made no call.
    await toRedis.set({ kind: 'none' })
    const calls = redis.decisions()
    await recovered(good)
    // The probe, and at most one repetition.
    expect(redis.decisions() - calls).toBeLessThanOrEqual(2)
    const steady = redis.decisions()
    for (let count = 0; count < 10; count++) expect(await statusOf(good)).toBe(200)
    expect(redis.decisions() - steady).toBe(10)
  })
})

describe('an origin behind a faulty network', () => {
  test('random octets are 502 for the request that gets them, and the next response is complete [R23]', async () => {
    const { good } = await cast()
    await recovered(good)
    await toOrigin.set({ kind: 'garbage' })
    const answer = await send(good)
    await toOrigin.set({ kind: 'none' })
    expect(answer.status).toBe(502)
    expect(JSON.parse(answer.text)).toMatchObject({ code: 'origin_unreachable' })
    expect((await send(good)).status).toBe(200)
  })

  test.each<readonly [string, Fault, number, string]>([
    ['no connection', { kind: 'refuse' }, 502, 'origin_unreachable'],
  ])(
    '%s: after five failures calls to the route are short-circuited with Retry-After, and to no other route [R23]',
    async (_, fault, status, code) => {
      const { good } = await cast()
      await recovered(good)
      await toOrigin.set(fault)
      const retryAfter = async () => {
        const answer = await send(good)
        expect(answer.status).toBe(status)
        expect(JSON.parse(answer.text)).toMatchObject({ code })
        return answer.headers.get('retry-after')
      }
      await expect.poll(retryAfter, { ...RECOVERY, interval: 1 }).toMatch(/^[1-5]$/)
      await toOrigin.set({ kind: 'none' })
      reached.length = 0
      const another = `/orders/${crypto.randomUUID()}`
      expect((await send(good, another)).status).toBe(200)
      await recovered(good, status)
      expect(reached.length).toBeLessThanOrEqual(3)
    },
  )
})
