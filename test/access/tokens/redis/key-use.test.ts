/** The last use of API keys: in the call that resolves the key, and at most once a minute. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAdmission } from '../../../../src/access/admission/admission.ts'
import { readOnlyStore } from '../../../../src/access/admission/read-only-store.ts'
import { createRedisAdmissionStore } from '../../../../src/access/admission/redis/store.ts'
import type { Principal } from '../../../../src/access/principal.ts'
import { revokedBeforeKey } from '../../../../src/access/revocation/revocation.ts'
import { createApiKeys } from '../../../../src/access/tokens/redis/api-keys.ts'
import { credentialHash, type Reference } from '../../../../src/access/tokens/reference.ts'
import { createReferences } from '../../../../src/access/tokens/references.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { createRedisRest } from '../../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'

const PUBLIC_URL = 'https://gateway.test'
const ADDRESS = '192.0.2.7'

describe.each(['auto', 'embedded'] as const)('the last use of an API key (%s Redis)', (prefer) => {
  let redis: TestRedis
  let rest: RedisConnection
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
    rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
    // Loads the scripts.
    const { reference } = await newKey()
    await isolate().resolve(reference)
  })
  afterAll(() => redis.close())

  async function newKey(tenant = 'acme') {
    const keys = createApiKeys({ redis: rest, publicUrl: PUBLIC_URL, now: Date.now })
    const { key, secret } = await keys.create({ name: 'k', subject: 's', tenant }, 'olga')
    const hash = await credentialHash(secret)
    const reference: Reference = { kind: 'api_key', hash, text: secret }
    return { keys, id: key.id, at: `pc:api-key-use:${key.id}`, reference }
  }

  function isolate(store = createRedisAdmissionStore(rest)) {
    const references = createReferences({ audience: PUBLIC_URL, now: Date.now })
    const admission = createAdmission({ store, references, now: Date.now })
    const call = { proof: undefined, address: ADDRESS, limits: [] }
    return {
      async resolve(reference: Reference): Promise<Principal> {
        const { principal } = await admission.admitReference({ ...call, reference })
        if (principal === undefined) throw new Error('the key is not valid')
        return principal
      },
    }
  }

  const read = async (at: string) => Number((await redis.direct.get(at)) ?? Number.NaN)
  const redisSecond = async () => Number((await redis.direct.time())[0])

  test('is recorded by the call that resolves the key, with a TTL', async () => {
    const { at, reference, keys, id } = await newKey()
    const before = redis.calls()
    const from = await redisSecond()
    await isolate().resolve(reference)
    expect(redis.calls() - before).toBe(1)
    expect(await read(at)).toBeGreaterThanOrEqual(from)
    expect(await redis.direct.ttl(at)).toBeGreaterThan(399 * 86_400)
    expect((await keys.find(id))?.lastUsedAtSeconds).toBe(await read(at))
  })

  test('is written once a minute, however many isolates record it', async () => {
    const { at, reference } = await newKey()
    const second = await redisSecond()
    await redis.direct.set(at, second - 50)
    await Promise.all(Array.from({ length: 5 }, () => isolate().resolve(reference)))
    expect(await read(at)).toBe(second - 50)
    await redis.direct.set(at, second - 61)
    await isolate().resolve(reference)
    expect(await read(at)).toBeGreaterThanOrEqual(second)
  })

  test('is not recorded for a key that is revoked, nor by an explanation', async () => {
    const revoked = await newKey('revoked')
    const cutoff = await revokedBeforeKey(DEFAULT_KEYS, 'tenant', PUBLIC_URL, 'revoked')
    await redis.direct.set(cutoff, 9_999_999_999, 'EX', 60)
    await isolate().resolve(revoked.reference)
    const explained = await newKey()
    const reading = isolate(readOnlyStore(createRedisAdmissionStore(rest)))
    await reading.resolve(explained.reference)
    expect(await redis.direct.exists(revoked.at, explained.at)).toBe(0)
  })

  test('that cannot be recorded does not refuse the request', async () => {
    const { at, id, reference } = await newKey()
    await redis.direct.lpush(at, 'x')
    expect((await isolate().resolve(reference)).key).toBe(id)
  })
})
