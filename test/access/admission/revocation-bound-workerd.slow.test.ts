/** The same over four gateway processes in real workerd. `REVOCATIONS=1000` sets the number. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../../dev/fault-proxy/proxy.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, type TestKey } from '../../harness/issuer.ts'
import { NEVER } from '../../harness/never.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { type Running, startWorkerd } from '../../origin/workerd.ts'
import { newCallerOf, outcomeOf, revokeAt } from './revocable.ts'
import { type Caller, countLate } from './revocation-bound.ts'

const REVOCATIONS = Number(process.env.REVOCATIONS ?? 9)
/** Three for each fault of Redis by default. */
const AT_ONCE = REVOCATIONS > 100 ? 10 : 3
const PROCESSES = 4
const BOUND_MS = 1_000
const TIMEOUT_MS = 60_000 + REVOCATIONS * 2_500

let redis: TestRedis
let proxy: FaultProxy
let origin: TestServer
let key: TestKey
const workers: Running[] = []
beforeAll(async () => {
  redis = await startTestRedis()
  await redis.direct.flushall()
  const { hostname: host, port } = new URL(redis.url)
  proxy = await startFaultProxy({ target: { host, port: Number(port) } })
  origin = await startHttpServer((request, response) => {
    request.resume().on('end', () => response.end('[]'))
  })
  key = await createKey('idp')
  const vars = {
    UPSTASH_REDIS_REST_URL: proxy.url,
    UPSTASH_REDIS_REST_TOKEN: redis.token,
    PUBLIC_URL: 'https://gateway.test',
    ORIGIN_URL: origin.url,
    ISSUERS: JSON.stringify([
      { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
    ]),
    MAX_STALENESS_MS: String(BOUND_MS),
  }
  const entry = join(import.meta.dirname, 'workers/bounded.ts')
  for (let number = 0; number < PROCESSES; number++)
    workers.push(await startWorkerd({ entry, vars }))
})
afterAll(async () => {
  for (const worker of workers) await worker.stop()
  await proxy?.close()
  await origin?.close()
  await redis?.close()
})

test(
  'after a revocation none of four processes admits the caller later than the bound',
  async () => {
    const counts = await countLate({
      boundMs: BOUND_MS,
      revocations: REVOCATIONS,
      atOnce: AT_ONCE,
      proxy,
      newCaller: () => newCallerOf(key),
      revoke: (caller, index) => revokeAt(redis, caller, index),
      isolates: workers.map(({ port }) => async ({ token }: Caller) => {
        const headers = { authorization: `Bearer ${token}`, 'cf-connecting-ip': '127.0.0.1' }
        const response = await fetch(`http://127.0.0.1:${port}/orders`, { headers })
        await response.arrayBuffer()
        return outcomeOf(response.status)
      }),
    })
    expect(counts.late, NEVER).toBe(0)
    expect(counts.revoked).toBe(REVOCATIONS)
    expect(counts.judged).toBeGreaterThanOrEqual(REVOCATIONS * PROCESSES)
    // Some requests were admitted from the view, so the bound is really exercised.
    expect(counts.within).toBeGreaterThan(0)
    expect(counts.before).toBeGreaterThan(0)
    if (process.env.REVOCATIONS !== undefined) console.info(counts)
  },
  TIMEOUT_MS,
)
