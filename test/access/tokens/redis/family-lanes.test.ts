/** Refresh families and codes on a cluster: in which lane they are, what they cost, and what a reuse ends there. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { withBroadcast } from '../../../../src/access/revocation/redis/broadcast.ts'
import { revokedBeforeKey } from '../../../../src/access/revocation/revocation.ts'
import { createRefreshFamilies } from '../../../../src/access/tokens/redis/refresh-families.ts'
import { credentialHash } from '../../../../src/access/tokens/reference.ts'
import type { FamilyEnd, RefreshFamilies } from '../../../../src/access/tokens/refresh-family.ts'
import { newRefreshToken } from '../../../../src/access/tokens/refresh-token.ts'
import { createRefreshTokens } from '../../../../src/access/tokens/refresh-tokens.ts'
import { Denied, Unavailable } from '../../../../src/errors.ts'
import {
  type AuthorizationCode,
  familyOfCode,
  newCode,
} from '../../../../src/features/authorization-code/authorization-code.ts'
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

interface GatewayOptions {
  /** The gateway ends after so many calls: all later ones fail. */
  readonly calls?: number
  readonly inControl?: boolean
  /** The prefix of a lane that does not answer. */
  readonly away?: string
}

/** Creates 64 lanes, and records the prefix of the lane of each call. */
function gateway({ calls = Number.POSITIVE_INFINITY, inControl, away }: GatewayOptions = {}) {
  const sent: string[] = []
  const lanes = withBroadcast(
    lanesOver(
      server,
      64,
      ({ keys }, pass) => {
        sent.push(keys.prefix)
        if (sent.length > calls) return Promise.reject(new Error('the gateway has ended'))
        return keys.prefix === away
          ? Promise.reject(new Unavailable('redis', 'unreachable'))
          : pass()
      },
      inControl,
    ),
  )
  return {
    lanes,
    sent,
    families: createRefreshFamilies(lanes),
    codes: createAuthorizationCodes(lanes),
  }
}

const session = {
  id: 'session-1',
  grant: { subject: SUBJECT, client: 'app', roles: [], scopes: [], audiences: [GATEWAY] },
  startedAtSeconds: nowSeconds(),
  expiresAtSeconds: nowSeconds() + 600,
}

async function prepared() {
  const { lanes } = gateway()
  const key = await revokedBeforeKey(lanes.keys, 'session', GATEWAY, session.id)
  const end: FamilyEnd = {
    revokedBeforeKey: key,
    revokedBeforeSeconds: nowSeconds() + 600,
    revokedBeforeTtlSeconds: 4_000,
    subject: SUBJECT,
  }
  const { prefix } = laneOf(lanes, SUBJECT).keys
  const read = async (name: string) => Number(await redis.direct.get(name))
  return {
    end,
    prefix,
    inControl: () => read(key),
    inLane: () => read(prefix + key.slice(lanes.keys.prefix.length)),
  }
}

const tokensOf = (store: RefreshFamilies, graceSeconds = 0) =>
  createRefreshTokens({ store, issuer: GATEWAY, graceSeconds })

/** Lets another gateway complete what is pending, as if its writer had ended 2 s ago. */
async function complete(): Promise<void> {
  const { lanes } = gateway()
  const { pendingFacts } = replicationKeys(lanes.keys)
  for (const mark of await redis.direct.zrange(pendingFacts, 0, -1))
    await redis.direct.zincrby(pendingFacts, -3e6, mark)
  await lanes.broadcast.complete(Date.now)
  expect(await redis.direct.zcard(pendingFacts)).toBe(0)
}

describe('a refresh family on a cluster', () => {
  test('is opened, read and rotated in the lane of its subject, with one call each', async () => {
    const { families, sent } = gateway()
    const { prefix } = await prepared()
    const tokens = tokensOf(families)
    const first = await tokens.open(session)
    const second = await tokens.rotate(first, await tokens.inspect(first, 'app'))
    expect(await tokens.find(second.refreshToken)).toMatchObject({ session, live: true })
    expect(sent).toEqual([prefix, prefix, prefix, prefix])
  })

  test('which an earlier version has opened is rotated and ended in the control lane', async () => {
    const { inLane, inControl } = await prepared()
    const first = await tokensOf(gateway({ inControl: true }).families).open(session)
    expect(await redis.direct.keys('pc:{c}:refresh:*')).toHaveLength(1)
    const tokens = tokensOf(gateway().families)
    await tokens.rotate(first, await tokens.inspect(first, 'app'))
    await expect(tokens.rotate(first, session)).rejects.toThrow(Denied)
    expect([await inLane(), await inControl()]).toEqual([
      session.expiresAtSeconds,
      session.expiresAtSeconds,
    ])
  })

  test('ends with its access tokens in its lane by the script that finds reuse, whatever becomes of the gateway', async () => {
    const { inLane, inControl } = await prepared()
    const tokens = tokensOf(gateway().families)
    const first = await tokens.open(session)
    const { refreshToken } = await tokens.rotate(first, session)
    const ending = gateway({ calls: 1 })
    await expect(tokensOf(ending.families).rotate(first, session)).rejects.toThrow('has ended')
    expect(await inLane()).toBe(session.expiresAtSeconds)
    expect(await inControl()).toBe(0)
    // The next use of any of its tokens, at any gateway, stores the end in the control lane too.
    await expect(tokensOf(gateway().families).inspect(refreshToken, 'app')).rejects.toThrow(Denied)
    expect(await inControl()).toBe(session.expiresAtSeconds)
  })

  test('that is in the control lane is ended in its lane by another gateway, if the one that found reuse has ended', async () => {
    const { inLane } = await prepared()
    const first = await tokensOf(gateway({ inControl: true }).families).open(session)
    const tokens = tokensOf(gateway({ inControl: true }).families)
    await tokens.rotate(first, session)
    const ending = gateway({ inControl: true, calls: 1 })
    await expect(tokensOf(ending.families).rotate(first, session)).rejects.toThrow('has ended')
    expect(await inLane()).toBe(0)
    await complete()
    expect(await inLane()).toBe(session.expiresAtSeconds)
  })

  test.each(['the lane of its name', 'the control lane'])(
    'is an outage, not unknown, while %s does not answer [R06]',
    async (which) => {
      const { lanes } = gateway()
      const token = await newRefreshToken((bytes) => new Uint8Array(bytes).fill(7))
      const home = laneOf(lanes, token.familyHash).keys.prefix
      const away = which === 'the control lane' ? lanes.keys.prefix : home
      const tokens = tokensOf(gateway({ away }).families)
      await expect(tokens.inspect(token.text, 'app')).rejects.toThrow(Unavailable)
      await expect(tokens.rotate(token.text, session)).rejects.toThrow(Unavailable)
    },
  )

  test('is rotated to one successor by concurrent requests at several gateways', async () => {
    const first = await tokensOf(gateway().families).open(session)
    const rotated = await Promise.all(
      Array.from({ length: 8 }, () => tokensOf(gateway().families, 60).rotate(first, session)),
    )
    expect(new Set(rotated.map(({ refreshToken }) => refreshToken)).size).toBe(1)
  })
})

describe('an authorization code on a cluster', () => {
  /** Issues a code as the authorization endpoint does. */
  async function issue({ codes }: Pick<ReturnType<typeof gateway>, 'codes'>) {
    const code = await newCode(
      (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
      SUBJECT,
      codes,
    )
    const record: AuthorizationCode = {
      ...{ session, redirectUri: 'https://app.test/', challenge: 'c', refresh: true },
      ...{ browserSession: 'browser', familyAttempt: code.familyAttempt },
    }
    await codes.put(code.hash, record)
    return code
  }

  /** Returns a use of a code as the token endpoint makes it. */
  async function use(
    { codes }: Pick<ReturnType<typeof gateway>, 'codes'>,
    code: Awaited<ReturnType<typeof issue>>,
    end: FamilyEnd,
  ) {
    const found = await codes.find(code.hash)
    if (found === undefined) throw new Error('no code')
    const family = await familyOfCode(code, found.code.familyAttempt)
    const token = await newRefreshToken((bytes) => new Uint8Array(bytes), family)
    const outcome = await codes.redeem({
      ...{ codeHash: code.hash, familyHash: token.familyHash, code: found.code, end },
      ...{ refreshTokenHash: token.hash, familySeconds: 600, revokedBeforeKeys: [] },
    })
    return { outcome, token }
  }

  test('is stored, read and redeemed in the lane of its subject with one call each, and its family is there', async () => {
    const own = gateway()
    const { end, prefix } = await prepared()
    const code = await issue(own)
    const { outcome, token } = await use(own, code, end)
    expect(outcome).toBe('redeemed')
    expect(own.sent).toEqual([prefix, prefix, prefix])
    expect(await credentialHash(token.text.split('.')[0] ?? '')).toBe(token.familyHash)
    expect(await own.families.find(token.familyHash)).toMatchObject({ session })
    expect(own.sent).toHaveLength(4)
  })

  test('that is used twice ends its session in its lane by the script, whatever becomes of the gateway', async () => {
    const { end, inLane, inControl } = await prepared()
    const code = await issue(gateway())
    const { token } = await use(gateway(), code, end)
    await expect(use(gateway({ calls: 2 }), code, end)).rejects.toThrow('has ended')
    expect([await inLane(), await inControl()]).toEqual([end.revokedBeforeSeconds, 0])
    expect(await gateway().families.find(token.familyHash)).toMatchObject({ ended: true })
    expect((await use(gateway(), code, end)).outcome).toBe('replayed')
    expect(await inControl()).toBe(end.revokedBeforeSeconds)
  })

  test('that is used twice on one server ends its session in as many replicas as configured', async () => {
    const { end } = await prepared()
    const waits: (number | undefined)[] = []
    const one: RedisConnection = {
      ...server,
      replicasAcked: 1,
      send(commands, options) {
        waits.push(options?.acknowledgedBy)
        return server.send(commands)
      },
    }
    const own = { codes: createAuthorizationCodes(one) }
    const code = await issue(own)
    expect((await use(own, code, end)).outcome).toBe('redeemed')
    expect(waits).not.toContain(1)
    expect((await use(own, code, end)).outcome).toBe('replayed')
    expect(waits).toContain(1)
  })

  test('is redeemed, and its replay found, by gateways with and without credentials=control', async () => {
    const { end } = await prepared()
    for (const [first, second] of [
      [true, false],
      [false, true],
    ]) {
      await redis.direct.flushall()
      const code = await issue(gateway({ inControl: first ?? false }))
      const { outcome, token } = await use(gateway({ inControl: second ?? false }), code, end)
      expect(outcome).toBe('redeemed')
      const { families } = gateway({ inControl: first ?? false })
      expect(await families.find(token.familyHash)).toMatchObject({ ended: false })
      expect((await use(gateway({ inControl: first ?? false }), code, end)).outcome).toBe(
        'replayed',
      )
      expect(await families.find(token.familyHash)).toMatchObject({ ended: true })
    }
  })

  test('is unknown only if every lane that may have it says so [R06]', async () => {
    const { lanes, codes } = gateway()
    expect(await codes.find('none')).toBeUndefined()
    for (const away of [lanes.keys.prefix, laneOf(lanes, 'none').keys.prefix])
      await expect(gateway({ away }).codes.find('none')).rejects.toThrow(Unavailable)
  })
})
