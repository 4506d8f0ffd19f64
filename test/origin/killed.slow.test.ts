/** The shipped gateway, killed under load and replaced. */
import { createHash } from 'node:crypto'
import { get } from 'node:http'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint, type TestKey } from '../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'
import { RUNTIMES, type TestRuntime } from './runtimes.ts'
import type { Running } from './workerd.ts'

const IN_FLIGHT = 10

let redis: TestRedis
let origin: TestServer
let key: TestKey
const gateways: Running[] = []
let originCalls = 0
let originAnswers = true

beforeAll(async () => {
  redis = await startTestRedis()
  await redis.direct.flushall()
  key = await createKey('idp')
  origin = await startHttpServer((_, response) => {
    originCalls += 1
    if (originAnswers) response.end('[]')
  })
})
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await origin?.close()
  await redis?.close()
})

async function start({ startShipped }: TestRuntime): Promise<Running> {
  const vars = {
    ...redisVars(redis),
    PUBLIC_URL: 'https://gateway.test',
    ORIGIN_URL: origin.url,
    ISSUERS: JSON.stringify([
      { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
    ]),
  }
  const gateway = await startShipped(vars)
  gateways.push(gateway)
  return gateway
}

async function send({ port }: Running, token: string): Promise<Response> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`http://127.0.0.1:${port}/orders`, { headers })
  await response.text()
  return response
}

/** Returns how many requests the caller may still send. */
const left = (response: Response) =>
  Number(/r=(\d+)/.exec(response.headers.get('ratelimit') ?? '')?.[1])

/** Windows are counted by the minute; compared requests must be in one window. */
async function awayFromWindowEnd() {
  const leftMs = 60_000 - (Date.now() % 60_000)
  if (leftMs < 10_000) await new Promise((done) => setTimeout(done, leftMs + 100))
}

test.each(RUNTIMES)(
  'on $name a new isolate honours the decisions of its predecessor, and only requests in progress are lost [R30, S75]',
  async (runtime) => {
    const jti = crypto.randomUUID()
    const [good, bad] = [await mint(key), await mint(key, { claims: { jti } })]
    const first = await start(runtime)
    await awayFromWindowEnd()
    expect([(await send(first, good)).status, (await send(first, bad)).status]).toEqual([200, 200])
    const hash = createHash('sha256')
      .update(JSON.stringify([ISSUER, jti]))
      .digest('base64url')
    await redis.direct.set(`pc:revoked:${hash}`, '1', 'EX', 600)
    expect((await send(first, bad)).status).toBe(401)
    const before = left(await send(first, good))

    originAnswers = false
    originCalls = 0
    const outcomes = Array.from(
      { length: IN_FLIGHT },
      () =>
        new Promise<number | 'lost'>((done) => {
          const headers = { authorization: `Bearer ${good}` }
          get({ port: first.port, path: '/orders', headers, agent: false }, (response) => {
            response.resume()
            done(response.statusCode ?? 0)
          }).on('error', () => done('lost'))
        }),
    )
    await vi.waitFor(() => expect(originCalls).toBe(IN_FLIGHT), { timeout: 20_000 })
    process.kill(first.pid, 'SIGKILL')
    // Requests in progress receive no response at all.
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['lost']))

    originAnswers = true
    const second = await start(runtime)
    originCalls = 0
    expect((await send(second, bad)).status).toBe(401)
    expect(originCalls).toBe(0)
    const after = await send(second, good)
    expect(after.status).toBe(200)
    expect(left(after)).toBe(before - IN_FLIGHT - 1)
  },
)
