import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { deriveRelationKeys } from '../../../../src/access/relations/redis/keys.ts'
import { createRelationTuples } from '../../../../src/access/relations/redis/tuples.ts'
import {
  matchesFilter,
  type RelationTuples,
  type TupleFilter,
} from '../../../../src/access/relations/store.ts'
import {
  formatTuple,
  parseTuple,
  type RelationTuple,
} from '../../../../src/access/relations/tuple.ts'
import { Unavailable } from '../../../../src/errors.ts'
import type { RedisConnection, RedisReply } from '../../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { createRedisRest } from '../../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { byOctets, expectedKeys, keysIn, sorted } from './tuple-model.ts'

/** Random histories; 20 by default. */
const RUNS = Number(process.env.TUPLE_RUNS ?? 20)
const TYPES = ['order', 'team', 'user']
const TENANTS = [null, 'acme', 'globex', 'a:b*', 'x'.repeat(300)]

const tuple = (text: string): RelationTuple => {
  const parsed = parseTuple(text)
  if (parsed === undefined) throw new Error(`invalid tuple: ${text}`)
  return parsed
}
const tuples = (...texts: string[]) => texts.map(tuple)

/** Few values, so that they collide. Ids sort differently as UTF-16 and as bytes. */
const ids = fc.constantFrom('1', '2', '10', 'a', 'a-', 'a@b', 'ü', '\u{ff5e}', '\u{1f600}', '%23')
const objects = fc
  .tuple(fc.constantFrom('order', 'team', 'team-x'), ids)
  .map(([type, id]) => `${type}:${id}`)
const relations = fc.constantFrom('viewer', 'view', 'member')
const subjects = fc.oneof(
  ids.map((id) => `user:${id}`),
  fc.constant('user:*'),
  fc.tuple(ids, relations).map(([id, relation]) => `team:${id}#${relation}`),
)
const someTuple = fc
  .tuple(objects, relations, subjects)
  .map(([object, relation, subject]): RelationTuple => ({ object, relation, subject }))
const changes = fc
  .uniqueArray(fc.tuple(someTuple, fc.boolean()), {
    selector: ([one]) => formatTuple(one),
    minLength: 1,
    maxLength: 12,
  })
  .map((some) => ({
    writes: some.filter(([, isWrite]) => isWrite).map(([one]) => one),
    deletes: some.filter(([, isWrite]) => !isWrite).map(([one]) => one),
  }))
const filters: fc.Arbitrary<TupleFilter> = fc.oneof(
  fc.constant({}),
  fc.record({ object: fc.constantFrom('order:', 'team:', 'team-x:', 'user:') }),
  fc.record({ object: objects }),
  fc.record({ object: objects, relation: relations }),
  fc.record({ subject: subjects }),
  fc.record({ subject: subjects, object: fc.constantFrom('order:', 'team:') }),
  fc.record({ subject: subjects, object: objects }),
  fc.record({ subject: subjects, object: objects, relation: relations }),
)

async function allPages(
  store: RelationTuples,
  tenant: string | null,
  filter: TupleFilter,
  limit: number,
  between: () => Promise<unknown> = async () => undefined,
) {
  const found: string[] = []
  let after: RelationTuple | undefined
  for (;;) {
    const page = await store.read(tenant, { ...filter, limit, after })
    expect(page.tuples.length).toBeLessThanOrEqual(limit)
    found.push(...page.tuples.map(formatTuple))
    after = page.tuples.at(-1)
    if (!page.hasMore) return found
    await between()
  }
}

describe.each(['auto', 'embedded'] as const)('relation tuples (%s Redis)', (prefer) => {
  let redis: TestRedis
  let rest: RedisConnection
  let store: RelationTuples
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
    rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 10_000 })
    store = createRelationTuples(rest, [...TYPES, 'team-x'])
  })
  afterAll(() => redis.close())
  beforeEach(() => redis.direct.flushall())

  test('behave like a set under any sequence of writes, deletions and queries', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom(...TENANTS), changes), { minLength: 1, maxLength: 12 }),
        filters,
        fc.integer({ min: 1, max: 7 }),
        async (history, filter, limit) => {
          await redis.direct.flushall()
          const sets = new Map<string | null, Set<string>>(TENANTS.map((name) => [name, new Set()]))
          const versions = new Map<string | null, number>()
          for (const [tenant, change] of history) {
            const set = sets.get(tenant) as Set<string>
            const writes = change.writes.map(formatTuple)
            const deletes = change.deletes.map(formatTuple)
            const result = await store.write(tenant, change)
            expect(result.written).toBe(writes.filter((text) => !set.has(text)).length)
            expect(result.deleted).toBe(deletes.filter((text) => set.has(text)).length)
            expect(result.version).toBeGreaterThan(versions.get(tenant) ?? 0)
            versions.set(tenant, result.version)
            for (const text of deletes) set.delete(text)
            for (const text of writes) set.add(text)
          }
          const expected = new Map<string, string[]>()
          for (const [tenant, set] of sets) {
            const keys = await deriveRelationKeys(DEFAULT_KEYS, tenant)
            for (const [key, members] of expectedKeys(set, keys)) expected.set(key, members)
            const matching = [...set].filter((text) => matchesFilter(tuple(text), filter))
            const inOrder =
              filter.subject === undefined ? sorted(matching) : matching.sort(byOctets)
            expect(await allPages(store, tenant, filter, limit)).toEqual(inOrder)
          }
          expect(await keysIn(redis.direct)).toEqual(expected)
        },
      ),
      { numRuns: RUNS },
    )
  })

  test('appear on exactly one page while others are added and deleted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(someTuple, { selector: formatTuple, minLength: 1, maxLength: 40 }),
        fc.array(changes, { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 5 }),
        async (stay, others, limit) => {
          await redis.direct.flushall()
          const staying = new Set(stay.map(formatTuple))
          await store.write('acme', { writes: stay, deletes: [] })
          const left = others.map((change) => ({
            writes: change.writes,
            deletes: change.deletes.filter((one) => !staying.has(formatTuple(one))),
          }))
          const found = await allPages(store, 'acme', {}, limit, async () => {
            const change = left.pop()
            if (change !== undefined) await store.write('acme', change)
          })
          expect(new Set(found).size).toBe(found.length)
          expect(found.filter((text) => staying.has(text))).toEqual(sorted(staying))
        },
      ),
      { numRuns: RUNS },
    )
  })

  test('need one call per page and one per write', async () => {
    const many = Array.from({ length: 100 }, (_, n) => tuple(`order:${n}#viewer@user:${n}`))
    await store.write('acme', { writes: many, deletes: [] })
    await store.read('acme', { limit: 10 })
    const before = redis.calls()
    await store.write('acme', { writes: many, deletes: [] })
    await store.read('acme', { limit: 50 })
    await store.read('acme', { limit: 50, subject: 'user:7' })
    await store.subjectsOf('acme', 'order:7', ['viewer', 'owner'])
    expect(redis.calls() - before).toBe(4)
  })

  test('list the subjects of a relation, and the version of the list', async () => {
    expect(await store.subjectsOf('acme', 'order:1', ['viewer'])).toEqual({
      named: [{ subjects: [], hasMore: false }],
      version: 0,
    })
    const written = tuples(
      'order:1#viewer@user:b',
      'order:1#viewer@team:1#member',
      'order:1#viewer@user:*',
    )
    const { version } = await store.write('acme', { writes: written, deletes: [] })
    expect(await store.subjectsOf('acme', 'order:1', ['owner', 'viewer'])).toEqual({
      named: [
        { subjects: [], hasMore: false },
        { subjects: ['user:*', 'user:b', 'team:1#member'], hasMore: false },
      ],
      version,
    })
    expect((await store.subjectsOf('globex', 'order:1', ['viewer'])).version).toBe(0)
  })

  test('get increasing versions, even if the clock was set back', async () => {
    const ahead = (Date.now() + 3_600_000) * 1_000
    const { version: key } = await deriveRelationKeys(DEFAULT_KEYS, 'acme')
    await redis.direct.set(key, String(ahead))
    const nothing = { writes: [], deletes: tuples('order:1#viewer@user:a') }
    expect((await store.write('acme', nothing)).version).toBe(ahead + 1)
    expect((await store.write('acme', nothing)).version).toBe(ahead + 2)
    expect(await redis.direct.get(key)).toBe(String(ahead + 2))
  })

  test('are written all or not at all', async () => {
    await store.write('acme', { writes: tuples('order:1#viewer@user:a'), deletes: [] })
    const keys = await deriveRelationKeys(DEFAULT_KEYS, 'acme')
    const wrong = [
      `${keys.tuples}order:2#viewer`,
      `${keys.subjects}user:b`,
      `${keys.index}team`,
      keys.version,
    ]
    for (const key of wrong) {
      const before = await redis.direct.get(keys.version)
      await redis.direct.set(key, 'not a set')
      const state = await keysIn(redis.direct)
      const change = {
        writes: tuples('order:1#viewer@user:c', 'order:2#viewer@user:b', 'team:1#member@user:c'),
        deletes: tuples('order:1#viewer@user:a'),
      }
      await expect(store.write('acme', change), key).rejects.toThrow(Unavailable)
      expect(await keysIn(redis.direct)).toEqual(state)
      if (key !== keys.version) expect(await redis.direct.get(keys.version)).toBe(before)
      await redis.direct.del(key)
    }
  })

  test('are not written if Redis is full, and deletions stay done [R12]', async ({ skip }) => {
    if (redis.kind === 'embedded') skip('the embedded Redis has no end of memory')
    const there = tuples('order:1#viewer@user:a', 'order:1#viewer@team:1#member')
    const { version } = await store.write('acme', { writes: there, deletes: [] })
    const state = await keysIn(redis.direct)
    await redis.direct.config('SET', 'maxmemory', 1)
    try {
      const more = { writes: tuples('order:2#viewer@user:a', 'team:1#member@user:a'), deletes: [] }
      await expect(store.write('acme', more)).rejects.toMatchObject({ fault: 'refused' })
      expect(await keysIn(redis.direct)).toEqual(state)
      const deleted = await store.write('acme', { writes: [], deletes: there })
      expect(deleted.deleted).toBe(2)
      expect(deleted.version).toBeGreaterThan(version)
      expect(await keysIn(redis.direct)).toEqual(new Map())
    } finally {
      await redis.direct.config('SET', 'maxmemory', 0)
    }
  })

  test('are not written again if the response is lost', async () => {
    redis.setAnswering(false)
    const before = redis.calls()
    const change = { writes: tuples('order:1#viewer@user:a'), deletes: [] }
    await expect(store.write('acme', change)).rejects.toThrow(Unavailable)
    expect(redis.calls() - before).toBe(1)
    redis.setAnswering(true)
  })
})

describe('a malformed reply is an outage:', () => {
  const saying = (...replies: unknown[]) =>
    createRelationTuples(
      { keys: DEFAULT_KEYS, send: async () => replies.map((result): RedisReply => ({ result })) },
      TYPES,
    )
  const change = { writes: tuples('order:1#viewer@user:a'), deletes: [] }

  test.each([
    [null],
    ['OK'],
    [[]],
    [[1, 0]],
    [[1, 0, null]],
    [[1, 0, '1.5']],
    [[1, 0, 12]],
    [[1, 0, '99999999999999999']],
    [['1', 0, '12']],
    [[-1, 0, '12']],
  ])('for a write: %j', async (reply) => {
    await expect(saying(reply).write(null, change)).rejects.toThrow(Unavailable)
  })

  test.each([
    [null],
    ['OK'],
    [[1]],
    [['order:1#viewer']],
    [['order#viewer', 'user:a']],
    [['order:1', 'user:a']],
    [['team:1#viewer', 'user:a']],
    [['order:1#viewer', 'user:a', 'order:1#viewer', 'user:b', 'order:1#viewer', 'user:c']],
  ])('for a list: %j', async (reply) => {
    const list = saying(reply).read(null, { limit: 1, object: 'order:1', relation: 'viewer' })
    await expect(list).rejects.toThrow(Unavailable)
  })

  test.each([
    [null, null, null],
    ['x', [], []],
    ['12', [], 'OK'],
    ['12', [1], []],
  ])('for the subjects of a relation: %j', async (...replies) => {
    await expect(saying(...replies).subjectsOf(null, 'order:1', ['viewer'])).rejects.toThrow(
      Unavailable,
    )
  })
})
