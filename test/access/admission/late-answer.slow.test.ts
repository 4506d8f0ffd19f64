/** Events between the decision of Redis and the moment when the isolate reads it. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../../dev/fault-proxy/proxy.ts'
import { revokedBeforeKey } from '../../../src/access/revocation/revocation.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { NEVER } from '../../harness/never.ts'
import { startWorld, type World } from '../relations/pipeline/gateway.ts'

/** Longer than an admission is valid. */
const LATE_MS = 1_100

let world: World
let proxy: FaultProxy
let isolate: ReturnType<World['isolate']>
beforeAll(async () => {
  world = await startWorld()
  const { hostname: host, port } = new URL(world.redis.url)
  proxy = await startFaultProxy({ target: { host, port: Number(port) } })
  isolate = world.isolate({
    env: { UPSTASH_REDIS_REST_URL: proxy.url, REDIS_TIMEOUT_MS: '5000' },
  })
  expect(await isolate.statusOf('/plain', await world.token('warm'))).toBe(200)
})
afterAll(async () => {
  await proxy?.close()
  await world?.close()
})
beforeEach(() => proxy.set({ kind: 'none' }))

/** Sends a request, reads its admission late, and runs `meanwhile` after Redis has decided. */
async function admittedLate(subject: string, meanwhile: () => Promise<unknown>): Promise<number> {
  const token = await world.token(subject)
  await proxy.set({ kind: 'latency', ms: LATE_MS })
  const decided = proxy.bytes().fromTarget
  const pending = isolate.send('/plain', token)
  await expect.poll(() => proxy.bytes().fromTarget, { interval: 5 }).toBeGreaterThan(decided)
  await meanwhile()
  const { status } = await pending
  return status
}

test('a caller who was revoked before a late admission was read is refused [S30]', async () => {
  const reached = world.reached.length
  const nowSeconds = Math.floor(Date.now() / 1000)
  const status = await admittedLate('revoked', async () =>
    world.redis.direct.set(
      await revokedBeforeKey(DEFAULT_KEYS, 'subject', ISSUER, 'revoked'),
      nowSeconds + 5,
      'EX',
      600,
    ),
  )
  expect(status).toBe(401)
  expect(world.reached.length, NEVER).toBe(reached)
})

test('an unrevoked caller is admitted after a late admission, by a second call to Redis', async () => {
  const [calls, reached] = [world.redis.calls(), world.reached.length]
  expect(await admittedLate('good', async () => undefined)).toBe(200)
  expect(world.redis.calls() - calls).toBe(2)
  expect(world.reached.length - reached).toBe(1)
})

test('an admission that is read in time costs a single call', async () => {
  const token = await world.token('prompt')
  const calls = world.redis.calls()
  expect((await isolate.send('/plain', token)).status).toBe(200)
  expect(world.redis.calls() - calls).toBe(1)
})
