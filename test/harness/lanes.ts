/** Lanes on one server: a lane is only a prefix, so a test of a cluster's keys needs no cluster. */
import { createLaneAdmissionStore } from '../../src/access/admission/redis/lane-store.ts'
import { withBroadcast } from '../../src/access/revocation/redis/broadcast.ts'
import type { Runtime } from '../../src/gateway/runtime.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { createKeys, DEFAULT_KEY_PREFIX } from '../../src/redis/keys.ts'
import { createLanes } from '../../src/redis/lanes.ts'
import { createRedisRest } from '../../src/redis/rest.ts'

/**
 * Returns a connection to one server with `count` lanes. The control lane has the names of one server, so
 * that tests find what they look for there.
 */
export function withLanes(
  server: RedisConnection,
  count: number,
  prefix: string = DEFAULT_KEY_PREFIX,
) {
  const lanes = createLanes({ prefix, count, connect: (keys) => ({ ...server, keys }) })
  return withBroadcast({ ...lanes, keys: createKeys(prefix) })
}

/** Returns what an isolate needs for its keys to be in `count` lanes. */
export const portsOfLanes = (count: number): Pick<Runtime, 'redis' | 'admissionStore'> => ({
  redis:
    ({ keyPrefix, ...config }) =>
    (calls) =>
      withLanes(createRedisRest({ ...config, ...calls }), count, keyPrefix),
  admissionStore: createLaneAdmissionStore,
})

/**
 * `LANES=4 npx vitest run FILE` runs the isolates of `startGateway` with so many lanes. Tests that look
 * into Redis with the names of one server fail then.
 */
export const lanesOfRun = Number(process.env.LANES ?? 0)
