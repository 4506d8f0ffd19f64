/** How admissions spread over the masters of a real cluster: commands are counted, not time. */
import { expect, test } from 'vitest'
import { connectResp } from '../../../src/runtimes/node/redis/resp.ts'
import { principal } from '../../access/admission/callers.ts'
import { startRedisCluster } from '../../harness/redis-cluster.ts'
import { hasRedisServer } from '../../harness/resp-server.ts'
import { outcomesOf } from './outcomes.ts'

const REQUESTS = 6_000
const AT_ONCE = 200
/** No call that a slow machine holds up is given up: Redis would run it later, and count it. */
const TIMEOUT_MS = 20_000
const NODE_TIMEOUT = ['--cluster-node-timeout', String(3 * TIMEOUT_MS)]

test.skipIf(!hasRedisServer).each([
  [3, 64, 2.8],
  // A multiple of 6: with 64 lanes, a master would have 10 or 11.
  [6, 96, 5.5],
])(
  'of %i masters with %i lanes each runs as many commands within a twentieth, and all together %f times those of one',
  async (masters, lanes, scaling) => {
    const cluster = await startRedisCluster({ masters, replicas: 0, args: NODE_TIMEOUT })
    const url = `${cluster.url}/?lanes=${lanes}`
    const client = connectResp({
      ...{ url, timeoutMs: TIMEOUT_MS, fenceMs: TIMEOUT_MS, replicasAcked: 0 },
    })
    const redis = client.connect({ timeoutMs: TIMEOUT_MS })
    const decided = () =>
      Promise.all(
        cluster.masters.map(async ({ direct }) => {
          const stats = await direct.info('commandstats')
          const of = (name: string) =>
            Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0)
          return of('evalsha') + of('eval')
        }),
      )
    try {
      expect(await client.check()).toEqual([])
      const callers = Array.from({ length: REQUESTS }, (_, n) =>
        principal({ subject: `subject-${n}` }),
      )
      const admit = async (requests: number) => {
        let admitted = 0
        for (let at = 0; at < requests; at += AT_ONCE)
          admitted += (await outcomesOf(redis, callers.slice(at, at + AT_ONCE), Date.now)).admitted
        expect(admitted).toBe(requests)
      }
      // The first call to each master loads the script.
      await admit(5 * AT_ONCE)
      const before = await decided()
      await admit(REQUESTS)
      const counts = (await decided()).map((count, at) => count - (before[at] ?? 0))
      const total = counts.reduce((sum, count) => sum + count)
      const busiest = Math.max(...counts)
      console.info(
        `commands by master: ${counts.join(', ')}; scaling ${(total / busiest).toFixed(2)}`,
      )
      expect(total, 'one call for each request').toBe(REQUESTS)
      expect(total / busiest).toBeGreaterThanOrEqual(scaling)
      for (const count of counts)
        expect(Math.abs(count * masters - total) / total).toBeLessThan(0.05)
    } finally {
      client.close()
      await cluster.close()
    }
  },
)
