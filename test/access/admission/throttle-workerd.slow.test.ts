/** The throttle of a whole gateway in real workerd. Signatures are counted at the verifier. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { MIN_CHECKS_AT_ONCE } from '../../../src/access/abuse/authentication-failures.ts'
import { DEFAULT_FAILURES } from '../../../src/access/abuse/definition.ts'
import { newAddress } from '../../harness/address.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint, type TestKey } from '../../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { type Running, startWorkerd } from '../../origin/workerd.ts'

const BURST = 300
/** The time of the first download of the key set. Waiting tokens are verified right after it. */
const KEY_SET_MS = 1_000
const { limit } = DEFAULT_FAILURES

describe('a burst of credentials in workerd', () => {
  let redis: TestRedis
  let origin: TestServer
  let provider: TestServer
  let key: TestKey
  let stranger: TestKey
  let gateway: Running
  let originCalls = 0
  beforeAll(async () => {
    redis = await startTestRedis()
    origin = await startHttpServer((_, response) => {
      originCalls += 1
      response.end('[]')
    })
    key = await createKey('k1')
    stranger = await createKey('k1')
    provider = await startHttpServer((_, response) => {
      setTimeout(() => response.end(JSON.stringify({ keys: [key.publicJwk] })), KEY_SET_MS)
    })
  })
  afterAll(async () => {
    await provider.close()
    await origin.close()
    await redis.close()
  })
  beforeEach(async () => {
    originCalls = 0
    gateway = await startWorkerd({
      entry: 'test/access/admission/workers/throttled.ts',
      vars: {
        ...redisVars(redis),
        PUBLIC_URL: 'https://gateway.test',
        ORIGIN_URL: origin.url,
        ISSUERS: JSON.stringify([
          { issuer: ISSUER, audience: AUDIENCE, jwksUri: `${provider.url}/jwks` },
        ]),
      },
    })
  })
  afterEach(() => gateway.stop())

  const urlOf = (path: string) => `http://127.0.0.1:${gateway.port}${path}`
  const verifications = async () => Number(await (await fetch(urlOf('/verifications'))).text())

  async function statusOf(token: string, address: string): Promise<number> {
    const headers = { authorization: `Bearer ${token}`, 'cf-connecting-ip': address }
    const response = await fetch(urlOf('/orders'), { headers })
    await response.arrayBuffer()
    return response.status
  }

  const tokensOf = (by: TestKey) =>
    Promise.all(
      Array.from({ length: BURST }, () => mint(by, { claims: { sub: crypto.randomUUID() } })),
    )

  test('of 300 forged tokens from one address at most 23 are verified, and none reaches the origin [S44]', async () => {
    const [forged, address] = [await tokensOf(stranger), newAddress()]
    const statuses = await Promise.all(forged.map((text) => statusOf(text, address)))
    const checked = await verifications()
    expect(checked).toBeGreaterThanOrEqual(limit)
    expect(checked).toBeLessThan(limit + MIN_CHECKS_AT_ONCE)
    expect(statuses.filter((status) => status === 401)).toHaveLength(checked)
    expect(statuses.filter((status) => status === 429)).toHaveLength(BURST - checked)
    expect(originCalls).toBe(0)
  })

  test('of 300 expired tokens of one subject from one address few are verified, and others are served', async () => {
    const [past, address] = [Math.floor(Date.now() / 1000) - 600, newAddress()]
    const claims = { sub: 'alice', iat: past - 60, exp: past }
    const expired = await Promise.all(Array.from({ length: BURST }, () => mint(key, { claims })))
    const statuses = await Promise.all(expired.map((text) => statusOf(text, address)))
    const checked = await verifications()
    expect(checked).toBeGreaterThanOrEqual(limit)
    // Twenty checks may run when the last failure is counted.
    expect(checked).toBeLessThan(2 * limit)
    expect(statuses.filter((status) => status === 401)).toHaveLength(checked)
    expect(statuses.filter((status) => status === 429)).toHaveLength(BURST - checked)
    expect(await statusOf(await mint(key, { claims: { sub: 'bob' } }), address)).toBe(200)
    expect(originCalls).toBe(1)
  })

  test('300 valid tokens from one address are all served, and each is verified once', async () => {
    const [good, address] = [await tokensOf(key), newAddress()]
    const statuses = await Promise.all(good.map((text) => statusOf(text, address)))
    expect(statuses).toEqual(Array(BURST).fill(200))
    expect(await verifications()).toBe(BURST)
    expect(originCalls).toBe(BURST)
  })
})
