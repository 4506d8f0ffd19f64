/** The stores of admission in Redis and in memory decide alike. */
import { afterAll, beforeAll, describe } from 'vitest'
import { createLaneAdmissionStore } from '../../../src/access/admission/redis/lane-store.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { withBroadcast } from '../../../src/access/revocation/redis/broadcast.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { DEFAULT_KEYS, type RedisKeys } from '../../../src/redis/keys.ts'
import { createLanes } from '../../../src/redis/lanes.ts'
import { secretDigest } from '../../../src/runtimes/node/redis/cluster/digest.ts'
import { createMemoryStore } from '../../../src/testing/memory-store.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { GUARD_REDIS_PROTOCOLS, overResp } from '../../harness/redis-protocols.ts'
import { admissionContract } from './admission-contract.ts'

describe.each(GUARD_REDIS_PROTOCOLS)('stores of admission ($name)', ({ prefer, connect }) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())

  admissionContract(async () => {
    await redis.direct.flushall()
    const rest = connect(redis)
    return {
      store: createRedisAdmissionStore(rest),
      revocations: createRevocations(rest, Date.now),
      references: createReferenceStore(rest),
      ban: async (key, untilSeconds) => void (await redis.direct.set(key, untilSeconds)),
    }
  })
})

/** The lanes are prefixes on one server. `test/redis/` has tests with the servers of a cluster. */
describe.each([1, 4, 64])('stores of admission over %i lanes', (count) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis()
  })
  afterAll(() => redis.close())

  admissionContract(async () => {
    await redis.direct.flushall()
    const { prefix } = DEFAULT_KEYS
    const connect = (keys: RedisKeys) => ({ ...overResp(redis), keys })
    const lanes = createLanes({ prefix, count, connect, digest: secretDigest })
    // The names of the contract have the prefix of one server.
    const cluster = withBroadcast({ ...lanes, keys: DEFAULT_KEYS })
    const refunds: Promise<boolean>[] = []
    const store = createLaneAdmissionStore(cluster, undefined, (done) => refunds.push(done))
    return {
      store: {
        ...store,
        async consult(query) {
          const facts = await store.consult(query)
          await Promise.all(refunds)
          return facts
        },
      },
      revocations: createRevocations(cluster, Date.now),
      references: createReferenceStore(cluster),
      ban: async (key, untilSeconds) => {
        for (const { keys } of [cluster, ...cluster.lanes.all])
          await redis.direct.set(keys.prefix + key.slice(prefix.length), untilSeconds)
      },
    }
  })
})

describe('stores of admission in memory', () => {
  admissionContract(async () => {
    const { admission, revocations, references, bans } = createMemoryStore(Date.now)
    return {
      store: admission,
      revocations,
      references,
      ban: async (key, untilSeconds) => bans.set(key, untilSeconds, Number.POSITIVE_INFINITY),
    }
  })
})
