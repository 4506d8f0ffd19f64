/** The stores of admission in Redis and in memory decide alike. */
import { afterAll, beforeAll, describe } from 'vitest'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { createMemoryStore } from '../../../src/testing/memory-store.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { GUARD_REDIS_PROTOCOLS } from '../../harness/redis-protocols.ts'
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
