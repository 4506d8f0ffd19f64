/** On a cluster, a gateway that finds reuse and ends before the lanes have it: another one completes it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { withBroadcast } from '../../../../src/access/revocation/redis/broadcast.ts'
import { revokedBeforeKey } from '../../../../src/access/revocation/revocation.ts'
import { createRefreshFamilies } from '../../../../src/access/tokens/redis/refresh-families.ts'
import type { FamilyEnd } from '../../../../src/access/tokens/refresh-family.ts'
import { createAuthorizationCodes } from '../../../../src/features/authorization-code/redis/authorization-codes.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { replicationKeys } from '../../../../src/redis/keys.ts'
import { laneOf } from '../../../../src/redis/lanes.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { overResp } from '../../../harness/redis-protocols.ts'
import { GATEWAY, nowSeconds } from '../../admission/callers.ts'
import { lanesOver } from '../../admission/redis/lanes.ts'

const SUBJECT = 'anne'
let redis: TestRedis
let server: RedisConnection
beforeAll(async () => {
  redis = await startTestRedis()
  server = overResp(redis)
})
beforeEach(async () => {
  await redis.direct.flushall()
})
afterAll(() => redis.close())

/** Creates 64 lanes. The gateway ends after so many calls: all later ones fail. */
function gateway(calls = Number.POSITIVE_INFINITY) {
  let left = calls
  return withBroadcast(
    lanesOver(server, 64, (_, pass) => {
      left -= 1
      return left < 0 ? Promise.reject(new Error('the gateway has ended')) : pass()
    }),
  )
}

async function prepared() {
  const lanes = gateway()
  const key = await revokedBeforeKey(lanes.keys, 'session', GATEWAY, 'session-1')
  const end: FamilyEnd = {
    revokedBeforeKey: key,
    revokedBeforeSeconds: nowSeconds() + 600,
    revokedBeforeTtlSeconds: 4_000,
    subject: SUBJECT,
  }
  const session = {
    id: 'session-1',
    grant: { subject: SUBJECT, client: 'app', roles: [], scopes: [], audiences: [GATEWAY] },
    startedAtSeconds: nowSeconds(),
    expiresAtSeconds: nowSeconds() + 600,
  }
  const inLane = laneOf(lanes, SUBJECT).keys.prefix + key.slice(lanes.keys.prefix.length)
  return { lanes, session, end, inLane }
}

/** Lets another gateway complete what is pending, as if its writer had ended 2 s ago. */
async function complete(): Promise<void> {
  const other = gateway()
  const { pendingFacts } = replicationKeys(other.keys)
  for (const mark of await redis.direct.zrange(pendingFacts, 0, -1))
    await redis.direct.zincrby(pendingFacts, -3e6, mark)
  await other.broadcast.complete(Date.now)
  expect(await redis.direct.zcard(pendingFacts)).toBe(0)
}

describe('a gateway that ends right after the script', () => {
  test('which found reuse of a refresh token, leaves the end of the session to others', async () => {
    const { lanes, session, end, inLane } = await prepared()
    const family = { session, current: 'current', previous: undefined, ended: false }
    await createRefreshFamilies(lanes).open('family', family, 600)
    const rotate = {
      ...{ familyHash: 'family', presented: 'stolen', successor: 'next', nonce: 'nonce' },
      ...{ issuedAtSeconds: nowSeconds(), nowMs: Date.now(), graceMs: 0, revokedBeforeKeys: [] },
      ...{ startedAtSeconds: session.startedAtSeconds, end },
    }
    await expect(createRefreshFamilies(gateway(1)).rotate(rotate)).rejects.toThrow('has ended')
    expect(await redis.direct.get(inLane)).toBeNull()
    await complete()
    expect(Number(await redis.direct.get(inLane))).toBe(end.revokedBeforeSeconds)
  })

  test('which found the second use of a code, leaves the end of the session to others', async () => {
    const { lanes, session, end, inLane } = await prepared()
    const code = {
      ...{ session, redirectUri: 'https://app.test/', challenge: 'c', refresh: true },
      browserSession: 'browser',
    }
    const redemption = {
      ...{ codeHash: 'code', familyHash: 'family', code, refreshTokenHash: 'first' },
      ...{ familySeconds: 600, revokedBeforeKeys: [], end },
    }
    const codes = createAuthorizationCodes(lanes)
    await codes.put('code', code)
    expect(await codes.redeem(redemption)).toBe('redeemed')
    const ending = createAuthorizationCodes(gateway(1))
    await expect(ending.redeem(redemption)).rejects.toThrow('has ended')
    expect(await redis.direct.get(inLane)).toBeNull()
    await complete()
    expect(Number(await redis.direct.get(inLane))).toBe(end.revokedBeforeSeconds)
  })
})
