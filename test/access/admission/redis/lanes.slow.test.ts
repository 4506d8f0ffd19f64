/** Legs of an admission: exact limits over lanes, and the refund of what another leg makes useless. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { LimitRequest } from '../../../../src/access/admission/limit.ts'
import { counterName } from '../../../../src/access/admission/redis/limit-overrides.ts'
import type { AdmissionFacts, AdmissionQuery } from '../../../../src/access/admission/store.ts'
import { NOTHING_REVOCABLE } from '../../../../src/access/revocation/revocation.ts'
import { Unavailable } from '../../../../src/errors.ts'
import { createMeter } from '../../../../src/features/plans/meter.ts'
import { METER_SCRIPTS } from '../../../../src/features/plans/redis/scripts.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { laneOf } from '../../../../src/redis/lanes.ts'
import { connectResp } from '../../../../src/runtimes/node/redis/resp.ts'
import { IS_LONG, usualOrLong } from '../../../harness/long.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { limitOf, takenOf } from '../callers.ts'
import { apartFrom, type Call, lanesOver, storeOver } from './lanes.ts'

let redis: TestRedis
const clients: { close(): void }[] = []
beforeAll(async () => {
  redis = await startTestRedis()
})
beforeEach(() => redis.direct.flushall())
afterAll(async () => {
  for (const client of clients) client.close()
  await redis.close()
})

/** Returns a connection with a socket of its own, as another process has. */
function connection(): RedisConnection {
  const client = connectResp({ url: redis.redisUrl, timeoutMs: 20_000 })
  clients.push(client)
  return client.connect({ timeoutMs: 20_000 })
}

const queryOf = (caller: string, limits: readonly LimitRequest[]): AdmissionQuery => ({
  caller,
  revocation: NOTHING_REVOCABLE,
  bans: [],
  limits,
  nowMs: Date.now(),
})
const isAdmitted = ({ limits }: AdmissionFacts) =>
  limits.every((state) => state !== undefined && 'admitted' in state && state.admitted)
const windowFor = (owner: string, rule: Parameters<typeof limitOf>[0]): LimitRequest => ({
  ...limitOf(rule),
  key: `window:${owner}`,
  owner,
})
/** Returns the shares of an exact window, see `exact-window.lua`. */
const sharesIn = (text: string | null | undefined) => text?.slice(10).match(/.{26}/g) ?? []
const takenFrom = async (lanes: RedisConnection, { key, owner = '' }: LimitRequest) =>
  takenOf((await redis.direct.get(counterName(laneOf(lanes, owner).keys, key))) ?? '0')

describe('an exact limit over 64 lanes', () => {
  test('4 connections with 200 concurrent requests each admit exactly 30 of a subject [R15]', async () => {
    const stores = Array.from({ length: 4 }, () => storeOver(lanesOver(connection(), 64)))
    const limit = windowFor('alice', { limit: 30, windowSeconds: 60 })
    const all = await Promise.all(
      stores.flatMap(({ store }) =>
        Array.from({ length: 200 }, () => store.consult(queryOf('alice', [limit]))),
      ),
    )
    expect(all.filter(isAdmitted).length).toBe(30)
  })

  test('20 subjects admit exactly 100 of a limit of their tenant in another lane, and no unit is lost [S93]', async () => {
    const stores = Array.from({ length: 4 }, () => storeOver(lanesOver(connection(), 64)))
    const lanes = lanesOver(connection(), 64)
    const tenant = apartFrom(lanes, [], 'tenant')
    const shared = windowFor(tenant, { limit: 100, windowSeconds: 60 })
    const subjects = Array.from({ length: 20 }, (_, n) =>
      apartFrom(lanes, [tenant], `subject-${n}`),
    )
    const own = subjects.map((subject) => windowFor(subject, { limit: 30, windowSeconds: 60 }))
    const all = await Promise.all(
      stores.flatMap(({ store }) =>
        Array.from({ length: 200 }, async (_, n) => {
          const at = n % subjects.length
          const subject = subjects[at] ?? ''
          const facts = await store.consult(queryOf(subject, [own[at] ?? shared, shared]))
          return isAdmitted(facts) ? subject : undefined
        }),
      ),
    )
    await Promise.all(stores.map(({ refunded }) => refunded()))
    expect(all.filter((subject) => subject !== undefined).length).toBe(100)
    // What the windows count is what was admitted.
    expect(await takenFrom(lanes, shared)).toBe(100)
    for (const [at, subject] of subjects.entries())
      expect(await takenFrom(lanes, own[at] ?? shared)).toBe(
        all.filter((admitted) => admitted === subject).length,
      )
  })
})

describe('a window of two lanes under load', () => {
  test('gives out its units, and never more, while most requests are refused elsewhere', async () => {
    const lanes = lanesOver(connection(), 64)
    const { store, refunded } = storeOver(lanes)
    const windows = usualOrLong(1, 6)
    const shared = windowFor(apartFrom(lanes, [], 'tenant'), { limit: 100, windowSeconds: 1 })
    const subjects = Array.from({ length: 4 }, (_, n) =>
      apartFrom(lanes, [shared.owner ?? ''], `s-${n}`),
    )
    const admittedMs: { from: number; to: number }[] = []
    const startMs = performance.now()
    const endMs = startMs + windows * 1_000
    async function callUntilTheEnd(first: number) {
      for (let n = first; performance.now() < endMs; n++) {
        const subject = subjects[n % subjects.length] ?? ''
        const own = windowFor(subject, { limit: 30, windowSeconds: 1 })
        const from = performance.now()
        const facts = await store.consult(queryOf(subject, [own, shared]))
        if (isAdmitted(facts)) admittedMs.push({ from, to: performance.now() })
      }
    }
    await Promise.all(Array.from({ length: 25 }, (_, n) => callUntilTheEnd(n)))
    // The last calls may end late.
    const seconds = (performance.now() - startMs) / 1_000
    await refunded()
    // Requests that certainly ran within one second.
    for (const { from } of admittedMs) {
      const within = admittedMs.filter((other) => other.from >= from && other.to < from + 1_000)
      expect(within.length).toBeLessThanOrEqual(100)
    }
    expect(admittedMs.length).toBeLessThanOrEqual(100 * (seconds + 1))
    if (IS_LONG) expect(admittedMs.length).toBeGreaterThanOrEqual(0.95 * 100 * windows)
  })
})

describe('a refused request', () => {
  test('leaves the window of the other lane as it was, so that no unit of others is renewed', async () => {
    const lanes = lanesOver(connection(), 64)
    const { store, refunded } = storeOver(lanes)
    const shared = windowFor(apartFrom(lanes, ['alice'], 'tenant'), { limit: 40 })
    const spent = windowFor('alice', { limit: 1 })
    for (let n = 0; n < 9; n++)
      await store.consult(queryOf(apartFrom(lanes, [], `other-${n}`), [shared]))
    await store.consult(queryOf('alice', [spent]))
    const name = counterName(laneOf(lanes, shared.owner ?? '').keys, shared.key)
    const before = await redis.direct.get(name)

    for (let n = 0; n < 20; n++) {
      const { limits } = await store.consult(queryOf('alice', [spent, shared]))
      // The other window reports the units that are left after the refund.
      expect(limits).toMatchObject([{ admitted: false }, { admitted: true, remaining: 31 }])
      await refunded()
    }
    // With the return of leases, the oldest units would be gone, and newer ones in their place. Only
    // the last share may have been joined by a take, which moves its time by at most an eighth.
    const [sharesBefore, sharesAfter] = [before, await redis.direct.get(name)].map(sharesIn)
    expect(sharesBefore?.length).toBeGreaterThan(3)
    expect(sharesAfter?.slice(0, -1)).toEqual(sharesBefore?.slice(0, -1))
    expect(sharesAfter?.length).toBe(sharesBefore?.length)
  })

  test('gives back only its own unit, while others take and give back units of the same window [S93]', async () => {
    const lanes = lanesOver(connection(), 64)
    const { store, refunded } = storeOver(lanes)
    const shared = windowFor(apartFrom(lanes, ['alice'], 'tenant'), { limit: 1_000 })
    const spent = windowFor('alice', { limit: 1 })
    await store.consult(queryOf('alice', [spent]))
    const calls = Array.from({ length: 300 }, (_, n) =>
      store.consult(
        queryOf(n % 3 === 0 ? 'bob' : 'alice', n % 3 === 0 ? [shared] : [spent, shared]),
      ),
    )
    const admitted = (await Promise.all(calls)).filter(isAdmitted).length
    await refunded()
    expect(admitted).toBe(100)
    expect(await takenFrom(lanes, shared)).toBe(100)
  })

  test('sends its refund once, over the socket of the take', async () => {
    const sent: Call[] = []
    const lanes = lanesOver(connection(), 64, (call, pass) => {
      sent.push(call)
      return pass()
    })
    const { store, refunded } = storeOver(lanes)
    const shared = windowFor(apartFrom(lanes, ['alice'], 'tenant'), { limit: 9 })
    const spent = windowFor('alice', { limit: 1 })
    await store.consult(queryOf('alice', [spent]))
    sent.length = 0
    await store.consult(queryOf('alice', [spent, shared]))
    await refunded()
    const [own, take, ...refunds] = sent
    expect(own?.keys.prefix).toBe(laneOf(lanes, 'alice').keys.prefix)
    expect(take?.keys.prefix).toBe(laneOf(lanes, shared.owner ?? '').keys.prefix)
    expect(take?.options?.over?.socket).toBeDefined()
    // The second one only if Redis had not cached the script.
    for (const { options, keys } of refunds) {
      expect(keys).toBe(take?.keys)
      expect(options).toEqual({ once: true, over: take?.options?.over })
    }
    expect(refunds.length).toBeGreaterThan(0)
  })

  test('whose refund is lost holds its unit until the window ends, and no longer', async () => {
    let isCut = false
    const lanes = lanesOver(connection(), 64, ({ options }, pass) => {
      if (isCut && options?.once) throw new Unavailable('redis', 'unreachable')
      return pass()
    })
    const { store, refunded } = storeOver(lanes)
    const shared = windowFor(apartFrom(lanes, ['alice'], 'tenant'), { limit: 2, windowSeconds: 3 })
    const spent = windowFor('alice', { limit: 1 })
    await store.consult(queryOf('alice', [spent]))
    isCut = true
    await store.consult(queryOf('alice', [spent, shared]))
    await refunded()
    isCut = false
    expect((await store.consult(queryOf('bob', [shared]))).limits).toMatchObject([{ remaining: 0 }])
    expect(isAdmitted(await store.consult(queryOf('bob', [shared])))).toBe(false)
    // A refused request counts nothing. The first one of the next window does: the clock is that of Redis.
    await expect
      .poll(async () => (await store.consult(queryOf('bob', [shared]))).limits, { interval: 100 })
      .toMatchObject([{ admitted: true, remaining: 1 }])
  })

  test('returns the units of a quota of its tenant, and releases its slot', async () => {
    const lanes = lanesOver(connection(), 64)
    const { store, refunded } = storeOver(lanes)
    const tenant = apartFrom(lanes, ['alice'], 'tenant')
    const metered = (kind: 'month' | 'concurrency', windowSeconds: number): LimitRequest => ({
      ...windowFor(tenant, {
        limit: 5,
        windowSeconds,
        meter: createMeter({
          kind,
          plans: undefined,
          planBy: [],
          windowSeconds,
          scripts: METER_SCRIPTS,
        }),
      }),
      key: `${kind}:${tenant}`,
      ...(kind === 'concurrency' && { slot: crypto.randomUUID() }),
    })
    const quota = metered('month', 2_592_000)
    const spent = windowFor('alice', { limit: 1 })
    await store.consult(queryOf('alice', [spent]))
    await store.consult(queryOf('bob', [quota, metered('concurrency', 30)]))
    for (let n = 0; n < 3; n++) {
      const slots = metered('concurrency', 30)
      const { limits } = await store.consult(queryOf('alice', [spent, quota, slots]))
      expect(limits).toMatchObject([{ admitted: false }, { remaining: 4 }, { remaining: 4 }])
      expect(limits[2]).not.toHaveProperty('slot')
      await refunded()
    }
    const { keys } = laneOf(lanes, tenant)
    expect(await redis.direct.get(counterName(keys, quota.key))).toMatch(/^\d+ 1$/)
    expect(await redis.direct.zcard(counterName(keys, `concurrency:${tenant}`))).toBe(1)
  })
})

describe('a lane that does not answer', () => {
  const fixture = async () => {
    let down = ''
    const lanes = lanesOver(connection(), 64, ({ keys }, pass) => {
      if (keys.prefix === down) throw new Unavailable('redis', 'unreachable')
      return pass()
    })
    const tenant = apartFrom(lanes, ['alice'], 'tenant')
    const stop = (value: string) => {
      down = laneOf(lanes, value).keys.prefix
    }
    return { lanes, ...storeOver(lanes), own: windowFor('alice', { limit: 9 }), tenant, stop }
  }

  test('refuses the requests of its subjects, and takes nothing from other lanes', async () => {
    const { lanes, store, refunded, own, tenant, stop } = await fixture()
    const shared = windowFor(tenant, { limit: 9 })
    stop('alice')
    const bans = [{ by: 'subject', key: `${lanes.keys.prefix}ban:subject:alice` } as const]
    const call = store.consult({ ...queryOf('alice', [own, shared]), bans })
    await expect(call).rejects.toThrow(Unavailable)
    await refunded()
    expect(await takenFrom(lanes, shared)).toBe(0)
    expect(isAdmitted(await store.consult(queryOf('bob', [shared])))).toBe(true)
  })

  test('fails a limit of its parties, which refuses or passes as its policy says', async () => {
    const { lanes, store, refunded, own, tenant, stop } = await fixture()
    stop(tenant)
    const denying = windowFor(tenant, { limit: 9 })
    const { limits } = await store.consult(queryOf('alice', [own, denying]))
    expect(limits[1]).toBeInstanceOf(Unavailable)
    await refunded()
    expect(await takenFrom(lanes, own)).toBe(0)
    const passing = windowFor(tenant, { limit: 9, onUnavailable: 'allow' })
    await store.consult(queryOf('alice', [own, passing]))
    await refunded()
    expect(await takenFrom(lanes, own)).toBe(1)
  })
})

describe('calls', () => {
  test.each([
    ['limits of the subject and of its API key', [], 1],
    ['a limit of the tenant', ['tenant'], 2],
    ['limits of the tenant and of the client', ['tenant', 'client'], 3],
    ['two limits of one tenant', ['tenant', 'tenant'], 2],
  ])('%s cost %s further parties %i calls, in one round', async (_, parties, calls) => {
    const sent: Call[] = []
    const lanes = lanesOver(connection(), 64, async (call, pass) => {
      sent.push(call)
      // No reply arrives before every call of the round is sent.
      await new Promise((resolve) => setImmediate(resolve))
      sentBefore.push(sent.length)
      return pass()
    })
    const sentBefore: number[] = []
    const { store } = storeOver(lanes)
    const owners = new Map<string, string>()
    for (const party of parties)
      owners.set(party, owners.get(party) ?? apartFrom(lanes, ['alice', ...owners.values()], party))
    const limits = [
      windowFor('alice', { name: 'a' }),
      { ...windowFor('alice', { name: 'key' }), key: 'key' },
      ...parties.map((party, n) => ({ ...windowFor(owners.get(party) ?? '', {}), key: `${n}` })),
    ]
    expect(isAdmitted(await store.consult(queryOf('alice', limits)))).toBe(true)
    expect(sent.filter(({ commands }) => commands[0]?.[0] === 'EVALSHA').length).toBe(calls)
    expect(sentBefore.slice(0, calls)).toEqual(new Array(calls).fill(calls))
  })

  test('every key of a call is in the slot of its lane, for 300 random queries', async () => {
    const stray: unknown[] = []
    const lanes = lanesOver(connection(), 64, ({ keys, commands }, pass) => {
      for (const command of commands) {
        const count = /^EVAL/.test(String(command[0])) ? Number(command[2]) : 0
        for (const key of command.slice(3, 3 + count))
          if (!String(key).startsWith(keys.prefix)) stray.push([keys.prefix, key])
      }
      return pass()
    })
    const { store, refunded } = storeOver(lanes)
    const { prefix } = lanes.keys
    let seed = 7
    const random = (below: number) => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
      return Math.floor((seed / 2 ** 32) * below)
    }
    const some = <Item>(make: () => Item): Item[] => Array.from({ length: random(4) }, make)
    for (let n = 0; n < 300; n++) {
      const kinds = ['session', 'client', 'tenant', 'subject', 'token'] as const
      const by = () => (random(2) === 0 ? 'address' : 'subject') as 'address' | 'subject'
      await store.consult({
        ...(random(4) > 0 && { caller: `caller-${random(50)}` }),
        revocation: {
          ...NOTHING_REVOCABLE,
          token: random(2) === 0 ? undefined : `${prefix}revoked:${random(9)}`,
          revokedBefore: some(() => {
            const kind = kinds[random(5)] ?? 'token'
            return { kind, key: `${prefix}cutoff:${kind}:${random(9)}` }
          }),
        },
        bans: some(() => ({ by: by(), key: `${prefix}ban:${random(9)}` })),
        observedBans: some(() => ({ by: by(), key: `${prefix}observed-ban:${random(9)}` })),
        limits: some(() => windowFor(`party-${random(30)}`, { limit: 1 + random(3) })),
        proof: random(3) === 0 ? { replayId: `proof-${n}`, replayTtlSeconds: 60 } : undefined,
        isReading: random(5) === 0,
        nowMs: Date.now(),
      })
      await refunded()
    }
    expect(stray).toEqual([])
    for (const name of await redis.direct.keys('*')) expect(name).toMatch(/^pc:\{[0-9a-z]+\}:/)
  })
})
