/** Facts in the lanes of a cluster. A lane is a prefix, so one server is enough. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBanList } from '../../../src/access/abuse/redis/bans.ts'
import { createViolationCounter } from '../../../src/access/abuse/redis/violations.ts'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import type { Principal } from '../../../src/access/principal.ts'
import { withBroadcast } from '../../../src/access/revocation/redis/broadcast.ts'
import { createRevocationLog } from '../../../src/access/revocation/redis/revocation-log.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { tokenIdHash } from '../../../src/access/token-id.ts'
import { createRefreshFamilies } from '../../../src/access/tokens/redis/refresh-families.ts'
import { familyEnd } from '../../../src/access/tokens/refresh-family.ts'
import { Unavailable } from '../../../src/errors.ts'
import type { RedisCommand, RedisConnection } from '../../../src/redis/connection.ts'
import { replicationKeys } from '../../../src/redis/keys.ts'
import { createLanes, laneIndex } from '../../../src/redis/lanes.ts'
import { secretDigest } from '../../../src/runtimes/node/redis/cluster/digest.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { overResp } from '../../harness/redis-protocols.ts'
import { ADDRESS, IDP, principal } from '../admission/callers.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis('auto')
})
afterAll(() => redis.close())

const now = () => Date.now()
const by = { issuer: IDP, issuers: [IDP], createdBy: 'olga' } as const

/** Runs before a call to a lane. It may throw, or wait. */
type Intercept = (lane: number, commands: readonly RedisCommand[]) => Promise<void> | void

let serial = 0

/** Returns the connection of a gateway to a cluster. `of` is a gateway on the same cluster. */
function cluster({
  lanes: count = 4,
  prefix = `facts${serial++}:`,
  intercept,
}: {
  readonly lanes?: number
  readonly prefix?: string
  readonly intercept?: Intercept
} = {}) {
  const server = overResp(redis)
  const connection = createLanes({
    digest: secretDigest,
    prefix,
    count,
    connect: (keys): RedisConnection => ({
      ...server,
      keys,
      async send(commands, options) {
        const lane = connection.lanes.all.findIndex((one) => one.keys.prefix === keys.prefix)
        await intercept?.(lane, commands)
        return server.send(commands, options)
      },
    }),
  })
  return withBroadcast(connection)
}
type Cluster = ReturnType<typeof cluster>

/** Returns what refuses a caller in each lane. Undefined: the lane admits it. */
const refusalsOf = ({ lanes }: Cluster, caller: Principal | null, address = ADDRESS) =>
  Promise.all(
    lanes.all.map(async (lane) => {
      const admission = createAdmission({ store: createRedisAdmissionStore(lane), now })
      const verdict = await admission.admit({
        ...{ principal: caller, address, limits: [], checksBans: true },
        ...{ proof: undefined, relation: undefined },
      })
      return verdict.denial?.code
    }),
  )

/** Whether the lane that decides about a caller refuses it, and how many lanes do. */
async function refusals(on: Cluster, caller: Principal) {
  const all = await refusalsOf(on, caller)
  return {
    own: all[laneIndex(caller.subject, all.length)] !== undefined,
    lanes: all.filter((code) => code !== undefined).length,
  }
}

const pendingOf = async ({ keys }: Cluster) =>
  redis.direct.zrange(replicationKeys(keys).pendingFacts, 0, -1)

/** Lets the pending facts be as old as those of a writer that has ended. */
async function age(on: Cluster): Promise<void> {
  const { pendingFacts } = replicationKeys(on.keys)
  for (const fact of await pendingOf(on)) await redis.direct.zincrby(pendingFacts, -3e6, fact)
}

const cutoff = (kind: 'session' | 'subject' | 'client' | 'tenant', value: string | undefined) => ({
  ...{ kind, issuer: IDP, value: value ?? '', atSeconds: now() / 1000, ttlSeconds: 60 },
})

/** Each writer of a fact, with the number of lanes that need it: all (0), or that of the subject. */
const WRITERS: Readonly<
  Record<string, readonly [number, (on: Cluster, caller: Principal) => Promise<unknown>]>
> = {
  'a token that its client revokes': [
    1,
    (on, { tokenIdHash: hash = '', subject }) =>
      createRevocations(on, now).revokeToken({
        tokenIdHash: hash,
        untilSeconds: now() / 1000 + 60,
        subject,
      }),
  ],
  'the end of a session whose subject is unknown': [
    0,
    (on, { tokenIdHash: hash = '' }) =>
      createRevocations(on, now).revokeToken({
        tokenIdHash: hash,
        untilSeconds: now() / 1000 + 60,
      }),
  ],
  'a cutoff of a subject': [
    1,
    (on, { subject }) => createRevocations(on, now).revokeBefore(cutoff('subject', subject)),
  ],
  'a cutoff of a session': [
    0,
    (on, { session }) => createRevocations(on, now).revokeBefore(cutoff('session', session)),
  ],
  'a cutoff of a client': [
    0,
    (on, { client }) => createRevocations(on, now).revokeBefore(cutoff('client', client)),
  ],
  ...Object.fromEntries(
    (['token', 'session', 'subject', 'client', 'tenant'] as const).map(
      (kind) =>
        [
          `an operator who revokes a ${kind}`,
          [
            kind === 'subject' ? 1 : 0,
            (on: Cluster, caller: Principal) => {
              const { tokenId: token, session, subject, client, tenant } = caller
              const value = { token, session, subject, client, tenant }[kind] ?? ''
              const order = { ...by, kind, value, ttlSeconds: 60 }
              return createRevocationLog(on, now).create(order)
            },
          ],
        ] as const,
    ),
  ),
  'an operator who revokes a client within a tenant': [
    0,
    (on, { client: value = '', tenant }) =>
      createRevocationLog(on, now).create({ ...by, kind: 'client', value, tenant, ttlSeconds: 60 }),
  ],
  'a ban of a subject': [
    1,
    (on, { subject: value }) =>
      createBanList(on, now).create({ ...by, kind: 'subject', value, seconds: 60 }),
  ],
  'a ban of an address': [
    0,
    (on) =>
      createBanList(on, now).create({
        ...{ kind: 'address', value: ADDRESS, seconds: 60, issuers: [], createdBy: 'olga' },
      }),
  ],
  'an automatic ban of an address': [
    0,
    (on) =>
      createViolationCounter(on, now).count({ kind: 'address', value: ADDRESS }, 'credential', {
        ...{ violations: 1, windowSeconds: 60, seconds: 60, maxSeconds: 60 },
        ...{ mode: 'enforce', refuses: 'everything' },
      }),
  ],
  'an automatic ban of a subject': [
    1,
    (on, { issuer, subject: value, tenant }) =>
      createViolationCounter(on, now).count(
        { kind: 'subject', issuer, value, tenant },
        'inspection',
        {
          ...{ violations: 1, windowSeconds: 60, seconds: 60, maxSeconds: 60 },
          ...{ mode: 'enforce', refuses: 'everything' },
        },
      ),
  ],
  'a refresh family that ends': [
    1,
    async (on, { session: id = '', subject }) => {
      const end = await familyEnd(on.keys, IDP, {
        ...{ id, startedAtSeconds: 0, expiresAtSeconds: now() / 1000 + 60 },
        grant: { subject, client: 'app', roles: [], scopes: [], audiences: [] },
      })
      await createRefreshFamilies(on, now).end('family', end)
    },
  ],
}

const newCaller = async (): Promise<Principal> => {
  const tokenId = crypto.randomUUID()
  const [client, tenant] = [`client-${tokenId}`, `tenant-${tokenId}`]
  return principal({ tokenId, tokenIdHash: await tokenIdHash(IDP, tokenId), client, tenant })
}

describe.each([1, 4])('with %i lanes, the lanes that need it have', (count) => {
  test.each(Object.entries(WRITERS))('%s', async (_, [lanes, write]) => {
    const on = cluster({ lanes: count })
    const caller = await newCaller()
    expect((await refusals(on, caller)).lanes).toBe(0)
    await write(on, caller)
    expect(await refusals(on, caller)).toEqual({ own: true, lanes: lanes === 0 ? count : lanes })
    expect(await pendingOf(on)).toEqual([])
  })
})

describe('a fact that is lifted', () => {
  test('ends in all lanes, and another one of the same key stays in force', async () => {
    const on = cluster()
    const log = createRevocationLog(on, now)
    const caller = await newCaller()
    const order = { ...by, kind: 'tenant', value: caller.tenant ?? '', ttlSeconds: 60 } as const
    const [first, second] = [await log.create(order), await log.create(order)]
    await log.remove(first.id)
    expect((await refusals(on, caller)).lanes).toBe(4)
    await log.remove(second.id)
    expect((await refusals(on, caller)).lanes).toBe(0)
  })

  test('does not come back with a late copy of its writer', async () => {
    const prefix = `facts${serial++}:`
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const slow = cluster({ prefix, intercept: (lane) => (lane === 2 ? held : undefined) })
    const on = cluster({ prefix })
    const bans = createBanList(on, now)
    const creating = createBanList(slow, now).create({
      ...{ kind: 'address', value: ADDRESS, seconds: 60, issuers: [], createdBy: 'olga' },
    })
    await expect.poll(async () => (await refusalsOf(on, null)).filter(Boolean).length).toBe(3)
    const [ban] = (await bans.list({ limit: 1 })).items
    await bans.remove(ban?.id ?? '')
    release()
    await creating
    expect(await refusalsOf(on, null)).toEqual([undefined, undefined, undefined, undefined])
  })

  test('leaves in force what a lane itself has written', async () => {
    const on = cluster()
    const caller = await newCaller()
    const lane = on.lanes.of(caller.subject)
    const token = { tokenIdHash: caller.tokenIdHash ?? '', untilSeconds: now() / 1000 + 60 }
    await createRevocations(lane, now).revokeToken(token)
    const log = createRevocationLog(on, now)
    const order = { ...by, kind: 'token', value: caller.tokenId ?? '', ttlSeconds: 60 } as const
    const { id } = await log.create(order)
    expect((await refusals(on, caller)).lanes).toBe(4)
    await log.remove(id)
    expect(await refusals(on, caller)).toEqual({ own: true, lanes: 1 })
  })
})

test('an operator cuts off tokens that were issued since the cutoff that a lane has written in this second', async () => {
  const on = cluster()
  const caller = await newCaller()
  const at = Math.floor(now() / 1000)
  const stopped = () => at * 1000
  const lane = on.lanes.of(caller.subject)
  await createRevocations(lane, stopped).revokeBefore({
    ...cutoff('subject', caller.subject),
    atSeconds: at,
  })
  const newer = { ...caller, tokenIdHash: 'newer', issuedAtSeconds: at + 1 }
  expect((await refusals(on, newer)).own).toBe(false)
  const order = { ...by, kind: 'subject', value: caller.subject, ttlSeconds: 60 } as const
  await createRevocationLog(on, stopped).create(order)
  expect((await refusals(on, newer)).own).toBe(true)
})

describe('a writer that ends after some of 64 lanes', () => {
  test.each([0, 1, 31, 63])('%i: another gateway completes it', async (reached) => {
    const prefix = `facts${serial++}:`
    const left = new Set(Array.from({ length: 64 }, (_, lane) => (lane * 29) % 64).slice(reached))
    const dying = cluster({
      ...{ prefix, lanes: 64 },
      intercept(lane) {
        if (left.has(lane)) throw new Unavailable('redis', 'unreachable')
      },
    })
    const on = cluster({ prefix, lanes: 64 })
    const caller = await newCaller()
    const order = { ...by, kind: 'tenant', value: caller.tenant ?? '', ttlSeconds: 60 } as const
    const error = await createRevocationLog(dying, now)
      .create(order)
      .catch((cause: unknown) => cause)
    expect(error).toBeInstanceOf(Unavailable)
    const { problem } = error as Unavailable
    expect(problem.detail).toContain(`in force in ${reached} of 64 lanes`)
    expect((await refusals(on, caller)).lanes).toBe(reached)

    expect(await on.broadcast.complete(now), 'its writer may still be at work').toBe(0)
    await age(on)
    expect(await on.broadcast.complete(now)).toBe(1)
    expect((await refusals(on, caller)).lanes).toBe(64)
    expect(await pendingOf(on)).toEqual([])
    expect(await on.broadcast.complete(now)).toBe(0)
  })

  test('a writer that was paused for long before its write, and ends after it, leaves a mark', async () => {
    const prefix = `facts${serial++}:`
    const on = cluster({ prefix })
    const caller = await newCaller()
    const written = on.keys.revokedBefore
    let isWritten = false
    const paused = cluster({
      prefix,
      async intercept(lane, commands) {
        if (lane >= 0) throw new Unavailable('redis', 'unreachable')
        if (isWritten || !JSON.stringify(commands).includes(written)) return
        isWritten = true
        // Other gateways believe that this one has ended.
        await age(on)
        await on.broadcast.complete(now)
      },
    })
    const order = cutoff('tenant', caller.tenant)
    await expect(createRevocations(paused, now).revokeBefore(order)).rejects.toThrow(Unavailable)
    expect((await refusals(on, caller)).lanes).toBe(0)
    await age(on)
    expect(await on.broadcast.complete(now)).toBe(1)
    expect((await refusals(on, caller)).lanes).toBe(4)
  })

  test('a fact that another gateway changes meanwhile stays pending', async () => {
    const prefix = `facts${serial++}:`
    const on = cluster({ prefix })
    const caller = await newCaller()
    const dying = cluster({
      prefix,
      intercept(lane) {
        if (lane >= 0) throw new Unavailable('redis', 'unreachable')
      },
    })
    // Between the copies of one writer and the end of its record, another one begins and dies.
    let isFirst = true
    const between = cluster({
      prefix,
      async intercept(lane) {
        if (lane !== 3 || !isFirst) return
        isFirst = false
        await createRevocations(dying, now)
          .revokeBefore(cutoff('tenant', caller.tenant))
          .catch(() => {})
      },
    })
    await createRevocations(between, now).revokeBefore(cutoff('tenant', caller.tenant))
    expect((await pendingOf(on)).length).toBe(1)
  })
})

describe('writers at the same time', () => {
  test.each(['before', 'after'])(
    'the end of one leaves the mark of another, which began %s it',
    async (order) => {
      const prefix = `facts${serial++}:`
      const on = cluster({ prefix })
      const caller = await newCaller()
      const key = `${on.keys.revokedBefore}tenant:${caller.tenant}`
      let isDown = false
      const failing = cluster({
        prefix,
        intercept(lane) {
          if (isDown && lane >= 0) throw new Unavailable('redis', 'unreachable')
        },
      })
      const set = (value: string) => (control: RedisConnection) =>
        control.send([['SET', key, value, 'EX', 600]])
      const begun = Promise.withResolvers<void>()
      const goOn = Promise.withResolvers<void>()
      const late = () =>
        failing.broadcast.write([{ key }], now, async (control) => {
          begun.resolve()
          await goOn.promise
          isDown = true
          await set('200')(control)
        })
      let writing: Promise<unknown> | undefined
      if (order === 'before') writing = late().catch(() => undefined)
      if (order === 'before') await begun.promise
      await on.broadcast.write([{ key }], now, async (control) => {
        if (order === 'after') writing = late().catch(() => undefined)
        await begun.promise
        await set('100')(control)
      })
      goOn.resolve()
      await writing
      expect(await pendingOf(on)).toHaveLength(1)
      await age(on)
      expect(await on.broadcast.complete(now)).toBe(1)
      const inLanes = await Promise.all(
        on.lanes.all.map(async (lane) => {
          const name = lane.keys.prefix + key.slice(on.keys.prefix.length)
          return (await lane.send([['GET', name]]))[0]?.result
        }),
      )
      expect(inLanes).toEqual(['200', '200', '200', '200'])
    },
  )
})

test('facts of a lane that is down do not keep those of other lanes from their end', async () => {
  const prefix = `facts${serial++}:`
  const on = cluster({ prefix })
  const subjects = Array.from({ length: 40 }, (_, index) => `subject-${index}`)
  const down = laneIndex('subject-0', 4)
  const dead = subjects.filter((subject) => laneIndex(subject, 4) === down)
  const healthy = subjects.find((subject) => laneIndex(subject, 4) !== down) ?? ''
  const none = cluster({
    prefix,
    intercept(lane) {
      if (lane >= 0) throw new Unavailable('redis', 'unreachable')
    },
  })
  const oneDown = cluster({
    prefix,
    intercept(lane) {
      if (lane === down) throw new Unavailable('redis', 'unreachable')
    },
  })
  const revoke = (subject: string | undefined, tokenId: string) =>
    createRevocations(none, now)
      .revokeToken({
        ...{ tokenIdHash: tokenId, untilSeconds: now() / 1000 + 60 },
        subject,
      })
      .catch(() => undefined)
  for (let count = 0; count < 210; count += 1)
    await revoke(dead[count % dead.length], `dead${count}`)
  await revoke(healthy, 'healthy')
  await age(on)
  await expect(oneDown.broadcast.complete(now)).rejects.toBeInstanceOf(Unavailable)
  const lane = on.lanes.of(healthy)
  expect((await lane.send([['EXISTS', `${lane.keys.revokedToken}healthy`]]))[0]?.result).toBe(1)
  expect(await on.broadcast.complete(now)).toBe(210)
})

test('a copy that changes nothing is in no feed', async () => {
  const on = cluster()
  const caller = await newCaller()
  await createRevocations(on, now).revokeBefore(cutoff('tenant', caller.tenant))
  const feeds = async () =>
    Promise.all(on.lanes.all.map(async ({ keys }) => redis.direct.hget(keys.feed, 'head')))
  const before = await feeds()
  const [key = ''] = await redis.direct.keys(`${on.keys.revokedBefore}*`)
  await on.broadcast.copy([{ key }], now)
  expect(await feeds()).toEqual(before)
  await on.broadcast.write([{ key }], now, (control) => control.send([['DEL', key]]))
  expect(await feeds()).not.toEqual(before)
  expect((await refusals(on, caller)).lanes).toBe(0)
})

test('a process copies an automatic ban once, and that of another process again', async () => {
  const prefix = `facts${serial++}:`
  let calls = 0
  const counted = () =>
    cluster({
      prefix,
      intercept(lane) {
        if (lane >= 0) calls += 1
      },
    })
  const violating = (on: Cluster) => {
    const violations = createViolationCounter(on, now)
    return () =>
      violations.count({ kind: 'address', value: ADDRESS }, 'credential', {
        ...{ violations: 1, windowSeconds: 60, seconds: 60, maxSeconds: 60 },
        ...{ mode: 'enforce', refuses: 'everything' },
      })
  }
  const first = violating(counted())
  for (let count = 0; count < 5; count += 1) await first()
  expect(calls).toBe(4)
  const second = violating(counted())
  for (let count = 0; count < 3; count += 1) await second()
  expect(calls).toBe(8)
})
