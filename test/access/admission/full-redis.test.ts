/** A Redis without free memory still answers reads and refuses writes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AdmissionVerdict, createAdmission } from '../../../src/access/admission/admission.ts'
import type { LimitRequest } from '../../../src/access/admission/limit.ts'
import { counterName } from '../../../src/access/admission/redis/limit-overrides.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { createReferences } from '../../../src/access/tokens/references.ts'
import { Unavailable } from '../../../src/errors.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { ADDRESS, GATEWAY, limitOf, principal, recordOf, stored } from './callers.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
afterAll(() => redis.close())

const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
const isolate = () =>
  createAdmission({
    store: createRedisAdmissionStore(rest()),
    references: createReferences({ audience: GATEWAY }),
    now: Date.now,
  })

describe.each(['principal', 'reference'] as const)('Redis without free memory (%s)', (kind) => {
  /** Creates a caller and returns a function that admits it. */
  async function caller(): Promise<(...limits: LimitRequest[]) => Promise<AdmissionVerdict>> {
    if (kind === 'principal')
      return (...limits) => isolate().admit({ principal: principal(), address: ADDRESS, limits })
    const reference = await stored(createReferenceStore(rest()), recordOf())
    return (...limits) => {
      const named = limits.map(({ rule, key }) => ({
        rule,
        window: { key },
        keyOf: () => ({ key }),
      }))
      const request = { reference, proof: undefined, address: ADDRESS, limits: named }
      return isolate().admitReference(request)
    }
  }

  test('a limit that cannot be written fails as its onUnavailable says [R12]', async ({ skip }) => {
    if (redis.kind === 'embedded') skip('the embedded Redis has no memory limit')
    const admit = await caller()
    const [strict, lax, watched, spent] = [
      limitOf(),
      limitOf({ onUnavailable: 'allow' }),
      limitOf({ mode: 'observe' }),
      limitOf({ limit: 1 }),
    ]
    await admit(spent)
    await redis.direct.config('SET', 'maxmemory', 1)
    try {
      const passed = await admit(lax, watched)
      expect(passed).toMatchObject({ denial: undefined, uncounted: ['test', 'test'] })
      await expect(admit(strict, lax)).rejects.toBeInstanceOf(Unavailable)
      expect((await admit(lax, spent)).denial?.code).toBe('rate_limited')
    } finally {
      await redis.direct.config('SET', 'maxmemory', 0)
    }
    for (const { key } of [strict, lax, watched])
      expect(await redis.direct.get(counterName(DEFAULT_KEYS, key))).toBeNull()
  })
})
