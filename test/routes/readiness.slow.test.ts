/** `GET /-/readyz` under concurrent requests: the whole gateway in workerd, over a real Redis. */
import { request as httpRequest } from 'node:http'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { Unavailable } from '../../src/errors.ts'
import { createSharedReading } from '../../src/isolate/shared-reading.ts'
import { sleep } from '../../src/isolate/timers.ts'
import { healthRoutes } from '../../src/routes/health.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey } from '../harness/issuer.ts'
import { redisVars } from '../harness/redis.ts'
import { type Running, startWorkerd } from '../origin/workerd.ts'
import { type FaultyRest, hanging, startFaultyRest } from '../rows/faulty-rest.ts'

const CHECK_TIMEOUT_MS = 5_000
const AT_ONCE = 200
/** Shorter than the deadline of a check, longer than a busy machine needs to send its requests. */
const REDIS_TIMEOUT_MS = 3_000
const MEMORY_MS = 1_000

interface Answer {
  readonly status: number
  readonly body: { readonly status: string; readonly checks: Record<string, string> }
}

describe('readyz in workerd', () => {
  let rest: FaultyRest
  let origin: TestServer
  let gateway: Running
  beforeAll(async () => {
    rest = await startFaultyRest()
    origin = await startHttpServer((_, response) => response.end('[]'))
  })
  afterAll(async () => {
    await origin.close()
    await rest.close()
  })
  beforeEach(async () => {
    const { publicJwk } = await createKey('idp')
    const issuer = { issuer: 'https://idp.test', audience: 'api', jwks: { keys: [publicJwk] } }
    gateway = await startWorkerd({
      entry: 'workers/gateway.ts',
      vars: {
        ...redisVars({ url: rest.url, token: rest.redis.token }, REDIS_TIMEOUT_MS),
        PUBLIC_URL: 'https://gateway.test',
        ORIGIN_URL: origin.url,
        ISSUERS: JSON.stringify([issuer]),
      },
    })
    rest.forget()
  })
  afterEach(async () => {
    rest.setFault(undefined)
    await gateway.stop()
  })

  const writes = () => rest.calls.filter((body) => body.includes('pc:readiness')).length

  /** Sends a request on a new connection. */
  function probe(): { sent: Promise<void>; answer: Promise<Answer> } {
    const url = `http://127.0.0.1:${gateway.port}/-/readyz`
    const request = httpRequest(url, { agent: false })
    const sent = new Promise<void>((resolve) => request.on('finish', resolve))
    const answer = new Promise<Answer>((resolve, reject) => {
      request.on('error', reject)
      request.on('response', async (response) => {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk as Buffer)
        const body = JSON.parse(Buffer.concat(chunks).toString())
        resolve({ status: response.statusCode ?? 0, body })
      })
    })
    answer.catch(() => undefined)
    request.end()
    return { sent, answer }
  }
  const many = () => Array.from({ length: AT_ONCE }, probe)

  test('200 concurrent requests cost one call to Redis, and all get its result [R18, S74]', async () => {
    const held: (() => void)[] = []
    rest.setFault((response) => {
      held.push(() => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify([{ result: 'OK' }]))
      })
    })
    const all = many()
    await Promise.all(all.map(({ sent }) => sent))
    await expect.poll(() => held.length).toBeGreaterThan(0)
    rest.setFault(undefined)
    for (const release of held) release()
    const answers = await Promise.all(all.map(({ answer }) => answer))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(AT_ONCE)
    expect(writes()).toBe(1)
  })

  test('so do 200 while Redis hangs, and the result is correct again when Redis is back [R18, R02, S74]', async () => {
    rest.setFault(hanging)
    const answers = await Promise.all(many().map(({ answer }) => answer))
    for (const { status, body } of answers) {
      expect(status).toBe(503)
      expect(body).toMatchObject({ status: 'unready', checks: { redis: 'failed', keySets: 'ok' } })
    }
    expect(writes()).toBe(1)
    rest.setFault(undefined)
    await new Promise((done) => setTimeout(done, 2 * MEMORY_MS))
    const { status, body } = await probe().answer
    expect([status, body.checks]).toEqual([200, { redis: 'ok', keySets: 'ok' }])
    expect(writes()).toBe(2)
  })
})

describe('a check that never settles', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('fails after five seconds, runs once at a time, and does not hide the other checks', async () => {
    let runs = 0
    const stuck = () => {
      runs += 1
      return new Promise<never>(() => {})
    }
    const app = healthRoutes({
      checks: [
        { name: 'stuck', check: stuck },
        { name: 'good', check: async () => undefined },
      ],
      now: Date.now,
    })
    const answers = Array.from({ length: AT_ONCE }, () => app.request('/readyz'))
    await vi.advanceTimersByTimeAsync(CHECK_TIMEOUT_MS + 500)
    for (const response of await Promise.all(answers)) {
      expect(response.status).toBe(503)
      expect(await response.json()).toMatchObject({ checks: { stuck: 'failed', good: 'ok' } })
    }
    expect(runs).toBe(1)
    await vi.advanceTimersByTimeAsync(MEMORY_MS)
    const later = app.request('/readyz')
    await vi.advanceTimersByTimeAsync(2 * CHECK_TIMEOUT_MS)
    expect((await later).status).toBe(503)
    expect(runs).toBe(2)
  })
  test('a request that dies while it reads is replaced by another', async () => {
    const reads: number[] = []
    const reading = createSharedReading({
      read(serial: number) {
        reads.push(serial)
        // The platform cancels the first request: nothing of it continues, not even a `finally`.
        return serial === 0 ? new Promise<number>(() => {}) : Promise.resolve(serial)
      },
      now: Date.now,
      memoryMs: MEMORY_MS,
      leaseMs: 3_000,
    })
    const dead = reading(0)
    dead.catch(() => undefined)
    const others = Array.from({ length: AT_ONCE }, (_, index) => reading(1 + index))
    await vi.advanceTimersByTimeAsync(2_999)
    expect(reads).toEqual([0])
    await vi.advanceTimersByTimeAsync(500)
    expect(reads).toHaveLength(2)
    expect(new Set(await Promise.all(others))).toEqual(new Set([reads[1]]))
  })

  test.each(['a value', 'a failure'])(
    '%s is read again if the clock was set back',
    async (kind) => {
      let nowMs = Date.now()
      let reads = 0
      const reading = createSharedReading({
        async read() {
          reads += 1
          if (kind === 'a failure') throw new Unavailable('redis', 'timeout')
          return reads
        },
        now: () => nowMs,
        memoryMs: MEMORY_MS,
        leaseMs: 3_000,
      })
      const read = () => reading(undefined).catch(() => undefined)
      await read()
      await read()
      expect(reads).toBe(1)
      nowMs -= 86_400_000
      await read()
      expect(reads).toBe(2)
    },
  )

  test('requests have a bounded wait even if one after another dies', async () => {
    let reads = 0
    const reading = createSharedReading({
      read() {
        reads += 1
        return new Promise<never>(() => {})
      },
      now: Date.now,
      memoryMs: MEMORY_MS,
      leaseMs: 3_000,
    })
    const outcomes = Array.from({ length: 10 }, () =>
      Promise.race([reading(undefined), sleep(60_000).then(() => 'dead')]).catch(String),
    )
    await vi.advanceTimersByTimeAsync(60_000)
    const results = await Promise.all(outcomes)
    expect(results.filter((text) => text === 'dead')).toHaveLength(reads)
    expect(results.filter((text) => text === 'Unavailable: gateway: overloaded')).toHaveLength(
      10 - reads,
    )
    expect(reads).toBe(3)
  })
})
