/** Lanes on one server: a lane is only a prefix, so a test of a cluster's keys needs no cluster. */
import { createLaneAdmissionStore } from '../../src/access/admission/redis/lane-store.ts'
import { withBroadcast } from '../../src/access/revocation/redis/broadcast.ts'
import type { Runtime } from '../../src/gateway/runtime.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { createKeys, DEFAULT_KEY_PREFIX } from '../../src/redis/keys.ts'
import { createLanes, laneTags } from '../../src/redis/lanes.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { secretDigest } from '../../src/runtimes/node/redis/cluster/digest.ts'
import type { TestRedis } from './redis.ts'

/**
 * Returns a connection to one server with `count` lanes. The control lane has the names of one server, so
 * that tests find what they look for there.
 */
export function withLanes(
  server: RedisConnection,
  count: number,
  prefix: string = DEFAULT_KEY_PREFIX,
) {
  const lanes = createLanes({
    prefix,
    count,
    connect: (keys) => ({ ...server, keys }),
    digest: secretDigest,
  })
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
 * `LANES=4 npx vitest run FILE` runs the isolates of a test's gateway with so many lanes. 0: one server.
 * Then `connectionOf` writes what these isolates read.
 */
export const lanesOfRun = Number(process.env.LANES ?? 0)

/** Returns a connection that writes what the isolates of a test read, for records that a test prepares. */
export function connectionOf(
  { url, token }: Pick<TestRedis, 'url' | 'token'>,
  count: number = lanesOfRun,
): RedisConnection {
  const server = createRedisRest({ url, token, timeoutMs: 5_000 })
  return count > 0 ? withLanes(server, count) : server
}

/**
 * Returns the keys of a fact: in the control lane, and in each lane. `name` is that of one server. For
 * tests that store what no writer of the gateway would.
 */
export function namesInLanes(name: string, count: number = lanesOfRun): readonly string[] {
  const end = name.slice(DEFAULT_KEY_PREFIX.length)
  const tags = count > 0 ? laneTags(count) : []
  return [name, ...tags.map((tag) => `${DEFAULT_KEY_PREFIX}{${tag}}:${end}`)]
}

/** Matches the beginning of the names of every lane, and of one server. */
export const LANE = /pc:(?:\{\w+\}:)?/.source
