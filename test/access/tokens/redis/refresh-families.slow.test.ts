import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { revokedBeforeKey } from '../../../../src/access/revocation/revocation.ts'
import { createRefreshFamilies } from '../../../../src/access/tokens/redis/refresh-families.ts'
import type {
  RefreshFamilies,
  RotationRequest,
} from '../../../../src/access/tokens/refresh-family.ts'
import { Unavailable } from '../../../../src/errors.ts'
import { authorizationServerKeys, DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { ALL_REDIS_PROTOCOLS } from '../../../harness/redis-protocols.ts'
import { answering } from '../../../redis/answers.ts'

const FAMILY = 'family-hash'
const KEY = authorizationServerKeys(DEFAULT_KEYS).refreshFamily + FAMILY
const REVOKED_BEFORE = await revokedBeforeKey(
  DEFAULT_KEYS,
  'session',
  'https://gateway.test',
  'sid',
)
const CLIENT_CUT_OFF = await revokedBeforeKey(DEFAULT_KEYS, 'client', 'https://gateway.test', 'app')
const STARTED = 1_800_000_000
const session = {
  id: 'sid',
  grant: {
    subject: 'alice',
    client: 'app',
    roles: [],
    scopes: ['a'],
    audiences: ['https://api.test'],
  },
  startedAtSeconds: STARTED,
  expiresAtSeconds: STARTED + 1_000,
}
const family = { session, current: 'h1', previous: undefined, ended: false }
const end = {
  revokedBeforeKey: REVOKED_BEFORE,
  revokedBeforeSeconds: STARTED + 1_000,
  revokedBeforeTtlSeconds: 1_200,
}

const use = (presented: string, successor: string, given: Partial<RotationRequest> = {}) => ({
  familyHash: FAMILY,
  presented,
  successor,
  nonce: `nonce of ${successor}`,
  nowMs: (STARTED + 100) * 1000,
  graceMs: 10_000,
  issuedAtSeconds: STARTED + 100,
  revokedBeforeKeys: [REVOKED_BEFORE, CLIENT_CUT_OFF],
  startedAtSeconds: STARTED,
  end,
  ...given,
})

describe.each(ALL_REDIS_PROTOCOLS)('refresh families ($name)', ({ prefer, connect }) => {
  let redis: TestRedis
  let families: RefreshFamilies
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
    families = createRefreshFamilies(connect(redis))
  })
  beforeEach(async () => {
    await redis.direct.flushall()
  })
  afterAll(() => redis.close())

  test('are found as they were created and rotated', async () => {
    expect(await families.find(FAMILY)).toBeUndefined()
    await families.open(FAMILY, family, 1_000)
    expect(await families.find(FAMILY)).toEqual(family)
    await families.rotate(use('h1', 'h2'))
    const previous = { hash: 'h1', rotatedAtMs: (STARTED + 100) * 1000 }
    expect(await families.find(FAMILY)).toEqual({ ...family, current: 'h2', previous })
  })

  test('have the TTL of their session from the start, unchanged by every use and by the end [S39]', async () => {
    await families.open(FAMILY, family, 1_000)
    expect(await redis.direct.pttl(KEY)).toBeGreaterThan(990_000)
    await redis.direct.pexpire(KEY, 5_000)
    await families.rotate(use('h1', 'h2'))
    await families.rotate(use('h1', 'h3'))
    await families.rotate(use('h2', 'h3'))
    expect(await redis.direct.pttl(KEY)).toBeLessThanOrEqual(5_000)
    await families.rotate(use('h1', 'h4'))
    expect(await redis.direct.pttl(KEY)).toBeLessThanOrEqual(5_000)
    await families.end(FAMILY, end)
    expect(await redis.direct.pttl(KEY)).toBeLessThanOrEqual(5_000)
  })

  test('a session of half a second has a TTL as well [S39]', async () => {
    await families.open(FAMILY, family, 0.5)
    const ttl = await redis.direct.pttl(KEY)
    expect(ttl === -2 || (ttl > 0 && ttl <= 500)).toBe(true)
  })

  test('the end of a missing family writes a cutoff with a TTL, and no family', async () => {
    await families.end(FAMILY, end)
    expect((await redis.direct.keys('*')).sort()).toEqual([REVOKED_BEFORE, 'pc:revocation-feed'])
    expect(await redis.direct.get(REVOKED_BEFORE)).toBe(String(STARTED + 1_000))
    expect(await redis.direct.ttl(REVOKED_BEFORE)).toBeGreaterThan(1_190)
  })

  test('an end never shortens a cutoff that is valid for longer [S34]', async () => {
    await redis.direct.set(REVOKED_BEFORE, STARTED + 5_000, 'EX', 9_000)
    await families.open(FAMILY, family, 1_000)
    await families.end(FAMILY, end)
    expect(await redis.direct.get(REVOKED_BEFORE)).toBe(String(STARTED + 5_000))
    expect(await redis.direct.ttl(REVOKED_BEFORE)).toBeGreaterThan(8_000)
    expect(await families.find(FAMILY)).toEqual({ ...family, ended: true })
  })

  test.each([
    ['of two rotations ago', 'h1'],
    ['that was never issued', 'h0'],
  ])('a hash %s ends the family and its access tokens [S36]', async (_name, dead) => {
    await families.open(FAMILY, family, 1_000)
    await families.rotate(use('h1', 'h2'))
    await families.rotate(use('h2', 'h3'))
    expect(await families.rotate(use(dead, 'h4'))).toEqual({ outcome: 'reused' })
    expect(await families.find(FAMILY)).toMatchObject({ current: 'h3', ended: true })
    expect(await redis.direct.get(REVOKED_BEFORE)).toBe(String(end.revokedBeforeSeconds))
    for (const hash of ['h1', 'h2', 'h3', 'h4'])
      expect(await families.rotate(use(hash, 'h5'))).toEqual({ outcome: 'ended' })
    expect(await families.find(FAMILY)).toMatchObject({ current: 'h3', ended: true })
  })

  test.each([
    [10_000, 'replayed', false],
    [10_001, 'reused', true],
  ])('the previous hash after %d ms is %s [S36, S37]', async (ms, outcome, ended) => {
    await families.open(FAMILY, family, 1_000)
    const first = use('h1', 'h2')
    await families.rotate(first)
    const again = await families.rotate(use('h1', 'h3', { nowMs: first.nowMs + ms }))
    expect(again.outcome).toBe(outcome)
    expect(await families.find(FAMILY)).toMatchObject({ current: 'h2', ended })
  })

  test('a retry returns the nonce and the time of the first use, and notes that a retry has them', async () => {
    await families.open(FAMILY, family, 1_000)
    const first = await families.rotate(use('h1', 'h2'))
    expect(first).toEqual({
      outcome: 'rotated',
      nonce: 'nonce of h2',
      issuedAtSeconds: STARTED + 100,
    })
    const before = await redis.direct.hgetall(KEY)
    const later = { nowMs: (STARTED + 110) * 1000, issuedAtSeconds: STARTED + 110 }
    expect(await families.rotate(use('h1', 'other', later))).toEqual({
      ...first,
      outcome: 'replayed',
    })
    expect(await redis.direct.hgetall(KEY)).toEqual({
      ...before,
      answers: '\nnonce of h2\nnonce of other\n',
    })
  })

  test.each([STARTED, STARTED + 1, STARTED + 1_000_000_000])(
    'a cutoff at or after the start (%d) refuses each use, and consumes nothing',
    async (at) => {
      await families.open(FAMILY, family, 1_000)
      await redis.direct.set(CLIENT_CUT_OFF, at)
      const before = await redis.direct.hgetall(KEY)
      expect(await families.rotate(use('h1', 'h2'))).toEqual({ outcome: 'cut_off' })
      expect(await redis.direct.hgetall(KEY)).toEqual(before)
      await redis.direct.set(CLIENT_CUT_OFF, STARTED - 1)
      expect(await families.rotate(use('h1', 'h2'))).toMatchObject({ outcome: 'rotated' })
      await redis.direct.set(CLIENT_CUT_OFF, at)
      expect(await families.rotate(use('h1', 'h2'))).toEqual({ outcome: 'cut_off' })
    },
  )

  test.each(['soon', '', '-1', '1e9'])(
    'a cutoff that is not a second (%j) is an outage, and nothing is consumed [R06]',
    async (value) => {
      await families.open(FAMILY, family, 1_000)
      await redis.direct.set(CLIENT_CUT_OFF, value)
      await expect(families.rotate(use('h1', 'h2'))).rejects.toBeInstanceOf(Unavailable)
      expect(await families.find(FAMILY)).toEqual(family)
    },
  )

  test('keys of a wrong type are an outage, and nothing is consumed [R12]', async () => {
    await redis.direct.set(KEY, 'x')
    await expect(families.find(FAMILY)).rejects.toBeInstanceOf(Unavailable)
    await expect(families.rotate(use('h1', 'h2'))).rejects.toBeInstanceOf(Unavailable)
    await redis.direct.flushall()
    await families.open(FAMILY, family, 1_000)
    await redis.direct.lpush(CLIENT_CUT_OFF, 'x')
    await expect(families.rotate(use('h1', 'h2'))).rejects.toBeInstanceOf(Unavailable)
    await redis.direct.lpush(REVOKED_BEFORE, 'x')
    await expect(families.end(FAMILY, end)).rejects.toBeInstanceOf(Unavailable)
    expect(await families.find(FAMILY)).toEqual(family)
  })

  test.each([
    ['no session', { current: 'h1' }],
    ['no current token', { session: JSON.stringify(session) }],
    ['a session that is not JSON', { session: 'x', current: 'h1' }],
    ['a session with an unknown member', { session: '{"id":"x","admin":true}', current: 'h1' }],
    [
      'a previous token without its time',
      { session: JSON.stringify(session), current: 'h2', previous: 'h1' },
    ],
    [
      'an invalid time',
      { session: JSON.stringify(session), current: 'h2', previous: 'h1', rotated_ms: 'x' },
    ],
  ])('a family with %s is an outage [R06]', async (_, fields) => {
    await redis.direct.hset(KEY, fields)
    await expect(families.find(FAMILY)).rejects.toBeInstanceOf(Unavailable)
  })
})

describe('a faulty Redis endpoint', () => {
  let close: () => Promise<void>
  afterEach(() => close())
  const acts = {
    open: (families: RefreshFamilies) => families.open(FAMILY, family, 10),
    find: (families: RefreshFamilies) => families.find(FAMILY),
    rotate: (families: RefreshFamilies) => families.rotate(use('h1', 'h2')),
    end: (families: RefreshFamilies) => families.end(FAMILY, end),
  }

  test.each(
    Object.keys(acts).flatMap((act) =>
      [
        undefined,
        '[]',
        '[{}]',
        '[{"result":null}]',
        '[{"result":{}}]',
        '[{"result":"OK"}]',
        '[{"result":[null]}]',
        '[{"result":[]}]',
        '[{"result":["rotated"]}]',
        '[{"result":["rotated",null,"1"]}]',
        '[{"result":["replayed","n","soon"]}]',
        '[{"result":["unknown","n","1"]}]',
        '[{"result":["other","n","1"]}]',
        '[{"result":[1,2,3,4,5]}]',
        '[{"error":"NOSCRIPT"}]',
        '[{"error":"OOM command not allowed"}]',
      ].map((body) => [act as keyof typeof acts, body] as const),
    ),
  )('%s with the reply %j is an outage, never a refusal [R06]', async (act, body) => {
    const endpoint = await answering(body)
    close = endpoint.close
    const outcome = acts[act](createRefreshFamilies(endpoint.rest))
    await expect(outcome).rejects.toBeInstanceOf(Unavailable)
    expect(endpoint.calls()).toBeGreaterThan(0)
  })
})
