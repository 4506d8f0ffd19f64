/** The operator configures how long a gateway waits for its Redis. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { startWorld, type World } from '../access/relations/pipeline/gateway.ts'
import { connectedStatus } from '../harness/connected.ts'

/** Longer than the default deadline. */
const FAR_MS = 400

let world: World
let proxy: FaultProxy
beforeAll(async () => {
  world = await startWorld()
  const { hostname: host, port } = new URL(world.redis.url)
  proxy = await startFaultProxy({ target: { host, port: Number(port) } })
})
afterAll(async () => {
  await proxy?.close()
  await world?.close()
})

test.each([
  ['too slow by default', {}, 503],
  ['fast enough for a longer deadline', { REDIS_TIMEOUT_MS: '4000' }, 200],
])('a Redis that answers after 400 ms is %s [R03]', async (_, env, expected) => {
  const isolate = world.isolate({
    env: { UPSTASH_REDIS_REST_URL: proxy.url, REDIS_TIMEOUT_MS: '250', ...env },
  })
  const token = await world.token('anne')
  expect(await connectedStatus(() => isolate.statusOf('/plain', token))).toBe(200)
  await proxy.set({ kind: 'latency', ms: FAR_MS })
  const response = await isolate.send('/plain', token)
  await proxy.set({ kind: 'none' })
  expect(response.status).toBe(expected)
})
