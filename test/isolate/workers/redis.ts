/** Redis, its REST server and a fault proxy in front of both, in one separate process. */
import { setPriority } from 'node:os'
import type { Fault } from '../../../dev/fault-proxy/fault.ts'
import { startFaultProxy } from '../../../dev/fault-proxy/proxy.ts'
import { startRedis } from '../../../dev/redis.ts'
import { startUpstashRest } from '../../../dev/upstash-rest/server.ts'

/** Above that of other tests, so that they do not delay its responses. */
const HIGH_PRIORITY = -10

try {
  setPriority(HIGH_PRIORITY)
} catch {
  // Only a privileged process may raise its priority.
}
const redis = await startRedis()
const rest = await startUpstashRest({ port: 0, token: process.env.REST_TOKEN ?? '', redis })
const proxy = await startFaultProxy({
  target: { host: '127.0.0.1', port: Number(new URL(rest.url).port) },
})
process.send?.(proxy.url)
process.on('message', async (fault: Fault) => {
  await proxy.set(fault)
  process.send?.('set')
})
process.on('disconnect', async () => {
  await proxy.close()
  await rest.close()
  await redis.close()
  process.exit()
})
