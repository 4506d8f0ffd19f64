/** The results of a check, and the results that it must never have. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import type { RelationQuery } from '../../../../src/access/relations/decision-point.ts'
import type { RelationModel } from '../../../../src/access/relations/model.ts'
import {
  createRedisDecisionPoint,
  createRelationCheck,
  type RelationLimits,
} from '../../../../src/access/relations/redis/check.ts'
import { deriveRelationKeys } from '../../../../src/access/relations/redis/keys.ts'
import { relationScript } from '../../../../src/access/relations/redis/script.ts'
import type { RelationTrace } from '../../../../src/access/relations/trace.ts'
import { parseTuple, type RelationTuple } from '../../../../src/access/relations/tuple.ts'
import type { RedisConnection, RedisReply } from '../../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { REDIS_PROTOCOLS } from '../../../harness/redis-protocols.ts'
import {
  anyUser,
  computed,
  difference,
  direct,
  from,
  modelOf,
  typeOf,
  union,
  user,
  usersetOf,
} from '../model/json.ts'
import { restOver, writesOf } from './world.ts'

const member = usersetOf('group', 'member')

/**
 * Groups within groups, folders that pass their viewers on to their content, and some blocked
 * users.
 */
const model: RelationModel = compileModel(
  modelOf(
    typeOf('group', { member: direct }, { member: [user, member] }),
    typeOf(
      'folder',
      {
        parent: direct,
        banned: direct,
        viewer: union(direct, from('viewer', 'parent')),
        reader: difference(computed('viewer'), computed('banned')),
      },
      {
        parent: [{ type: 'folder' }],
        banned: [user, usersetOf('folder', 'reader')],
        viewer: [user, anyUser, member],
      },
    ),
  ),
)

const tuplesOf = (...texts: string[]): RelationTuple[] =>
  texts.map((text) => parseTuple(text) ?? { object: '', relation: '', subject: '' })

const queryOf = (text: string, more: Partial<RelationQuery> = {}): RelationQuery => {
  const [tuple = { object: '', relation: '', subject: '' }] = tuplesOf(text)
  return { tenant: null, contextualTuples: [], ...tuple, ...more }
}

/** Creates a chain of nested folders, the last of which anne may view. */
const chain = (length: number) => [
  ...Array.from({ length }, (_, at) => `folder:${at}#parent@folder:${at + 1}`),
  `folder:${length}#viewer@user:anne`,
]

describe.each(REDIS_PROTOCOLS)('a check ($name)', ({ prefer, connect }) => {
  let redis: TestRedis
  let rest: RedisConnection
  let calls = 0
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
    const connection = connect(redis)
    rest = {
      ...connection,
      send(commands, options) {
        calls += 1
        return connection.send(commands, options)
      },
    }
  })
  afterAll(() => redis.close())

  async function storeTuples(...texts: string[]): Promise<void> {
    await restOver(redis.direct).send([['FLUSHDB'], ...(await writesOf(tuplesOf(...texts)))])
  }

  const authority = (limits?: RelationLimits) =>
    createRedisDecisionPoint(rest, createRelationCheck(model, limits))

  async function outcomeOf(text: string, more?: Partial<RelationQuery>) {
    const { decision } = await authority().check(queryOf(text, more))
    return decision.outcome === 'unknown' ? decision.why : decision.outcome
  }

  test('makes one round trip, and two if Redis does not have the script yet', async () => {
    await storeTuples('folder:1#viewer@user:anne')
    await redis.direct.script('FLUSH')
    const checker = authority()
    const query = queryOf('folder:1#viewer@user:anne')
    const before = calls
    await checker.check(query)
    expect(calls - before).toBe(2)
    for (let count = 0; count < 3; count++) await checker.check(query)
    expect(calls - before).toBe(5)
  })

  test('counts each userset that it follows, and reports what it could not visit', async () => {
    await storeTuples('folder:0#banned@folder:1#reader', 'folder:1#viewer@user:anne')
    const query = queryOf('folder:0#banned@user:anne')
    const within = async (limits: RelationLimits) => (await authority(limits).check(query)).decision
    expect(await within({ maxDepth: 1, maxWork: 1_000 })).toEqual({ outcome: 'allowed' })
    expect(await within({ maxDepth: 0, maxWork: 1_000 })).toEqual({
      outcome: 'unknown',
      why: 'max_depth_exceeded',
    })
    expect(await within({ maxDepth: 1, maxWork: 1 })).toEqual({
      outcome: 'unknown',
      why: 'max_work_exceeded',
    })
  })

  test('is small enough to be sent, for every model', () => {
    const [TYPES, RELATIONS, MAX_BYTES] = [99, 6, 262_144]
    // Each type refers to the next, and the last to the first, so every subject could have every
    // relation.
    const types = Array.from({ length: TYPES }, (_, at) => {
      const next = `type${(at + 1) % TYPES}`
      const relations: Record<string, unknown> = { relation0: direct }
      for (let index = 1; index < RELATIONS; index++)
        relations[`relation${index}`] = computed(`relation${index - 1}`)
      const given = [user, usersetOf(next, `relation${RELATIONS - 1}`)]
      return typeOf(`type${at}`, relations, { relation0: given })
    })
    const script = relationScript(compileModel(modelOf(...types)))
    expect(script).toContain(`type${TYPES - 1}#relation${RELATIONS - 1}`)
    expect(script.length).toBeLessThan(MAX_BYTES)
  })

  test('follows 25 tuples, and reports the 26th as unknown', async () => {
    await storeTuples(...chain(25))
    expect(await outcomeOf('folder:0#viewer@user:anne')).toBe('allowed')
    await storeTuples(...chain(26))
    expect(await outcomeOf('folder:0#viewer@user:anne')).toBe('max_depth_exceeded')
    expect(await outcomeOf('folder:1#viewer@user:anne')).toBe('allowed')
    const groups = Array.from(
      { length: 25 },
      (_, at) => `group:${at}#member@group:${at + 1}#member`,
    )
    await storeTuples('folder:0#viewer@group:0#member', ...groups, 'group:25#member@user:anne')
    expect(await outcomeOf('folder:0#viewer@user:anne')).toBe('max_depth_exceeded')
    expect(await outcomeOf('group:0#member@user:anne')).toBe('allowed')
  })

  test('finds on a short path what was too deep on a long one', async () => {
    const short = 'folder:0#parent@folder:3'
    await storeTuples(...chain(4), short)
    const limits = { maxDepth: 3, maxWork: 1_000 }
    const { decision } = await authority(limits).check(queryOf('folder:0#viewer@user:anne'))
    expect(decision).toEqual({ outcome: 'allowed' })
  })

  test('reports a paradox as unknown, never as allowed', async () => {
    await storeTuples('folder:1#viewer@user:anne', 'folder:1#banned@folder:1#reader')
    expect(await outcomeOf('folder:1#reader@user:anne')).toBe('negated_cycle')
    expect(await outcomeOf('folder:1#reader@user:bob')).toBe('denied')
  })

  test('ends in cycles', async () => {
    await storeTuples(
      'folder:1#parent@folder:2',
      'folder:2#parent@folder:1',
      'folder:2#parent@folder:2',
    )
    expect(await outcomeOf('folder:1#viewer@user:anne')).toBe('denied')
    await storeTuples('group:1#member@group:2#member', 'group:2#member@group:1#member')
    expect(await outcomeOf('group:1#member@user:anne')).toBe('denied')
    expect(await outcomeOf('group:1#member@group:2#member')).toBe('allowed')
  })

  test('separates tenants', async () => {
    const theirs = await writesOf(tuplesOf('folder:1#viewer@user:anne'), 'acme')
    await restOver(redis.direct).send([['FLUSHDB'], ...theirs])
    const outcomeIn = (tenant: string | null) => outcomeOf('folder:1#viewer@user:anne', { tenant })
    expect(await outcomeIn('acme')).toBe('allowed')
    expect(await outcomeIn(null)).toBe('denied')
    expect(await outcomeIn('acme:x')).toBe('denied')
    expect(await outcomeIn('a'.repeat(300))).toBe('denied')
  })

  test('uses contextual tuples like stored ones, for this query only', async () => {
    await storeTuples('folder:1#viewer@group:1#member')
    const contextualTuples = tuplesOf('group:1#member@group:2#member', 'group:2#member@user:anne')
    const query = 'folder:1#viewer@user:anne'
    expect(await outcomeOf(query, { contextualTuples })).toBe('allowed')
    expect(await outcomeOf(query)).toBe('denied')
    const wrong = tuplesOf('folder:1#viewer@folder:2#reader', 'folder:2#viewer@user:anne')
    expect(await outcomeOf(query, { contextualTuples: wrong })).toBe('denied')
  })

  test('refuses relations that the model does not define', async () => {
    await storeTuples('folder:1#owner@user:anne', 'robot:1#viewer@user:anne')
    expect(await outcomeOf('folder:1#owner@user:anne')).toBe('denied')
    expect(await outcomeOf('robot:1#viewer@user:anne')).toBe('denied')
    expect(await outcomeOf('folder:1#owner@folder:1#owner')).toBe('denied')
  })

  test.each([
    ['', 'viewer', 'user:anne'],
    ['folder:1#parent', 'viewer', 'user:anne'],
    ['folder:*', 'viewer', 'user:anne'],
    ['folder:1', 'viewer#x', 'user:anne'],
    ['folder:1', "viewer'", 'user:anne'],
    ['folder:1', 'viewer', 'user:a:b'],
    ['folder:1', 'viewer', 'user:a\n'],
  ])('makes no call for %j, %j, %j', async (object, relation, subject) => {
    const before = redis.calls()
    const query = { tenant: null, object, relation, subject, contextualTuples: [] }
    await expect(authority().check(query)).rejects.toThrow(TypeError)
    const more = { ...queryOf('folder:1#viewer@user:anne') }
    const contextualTuples = [{ object, relation, subject }]
    await expect(authority().check({ ...more, contextualTuples })).rejects.toThrow(TypeError)
    expect(redis.calls()).toBe(before)
  })

  test('accepts at most 20 contextual tuples', async () => {
    await storeTuples()
    const many = (count: number) =>
      tuplesOf(...Array.from({ length: count }, (_, at) => `folder:1#viewer@user:u${at}`))
    const query = queryOf('folder:1#viewer@user:u19')
    const checkWith = (count: number) =>
      authority().check({ ...query, contextualTuples: many(count) })
    expect((await checkWith(20)).decision).toEqual({ outcome: 'allowed' })
    await expect(checkWith(21)).rejects.toThrow(TypeError)
  })

  test('returns the version, and refuses to decide by an older version than required', async () => {
    await storeTuples('folder:1#viewer@user:anne')
    const query = queryOf('folder:1#viewer@user:anne')
    expect((await authority().check(query)).version).toBe(0)
    const { version } = await deriveRelationKeys(DEFAULT_KEYS, null)
    await redis.direct.set(version, '1795000000000001')
    const atLeast = 1_795_000_000_000_001
    expect((await authority().check({ ...query, atLeast })).version).toBe(atLeast)
    const stale = authority().check({ ...query, atLeast: atLeast + 1 })
    await expect(stale).rejects.toMatchObject({ dependency: 'redis', fault: 'stale' })
    await redis.direct.set(version, 'rubbish')
    await expect(authority().check(query)).rejects.toMatchObject({ fault: 'malformed' })
  })

  test('reports a key of the wrong type as an outage, not as a decision', async () => {
    await storeTuples()
    const { tuples } = await deriveRelationKeys(DEFAULT_KEYS, null)
    await redis.direct.set(`${tuples}folder:1#viewer`, 'x')
    const pending = authority().check(queryOf('folder:1#viewer@user:anne'))
    await expect(pending).rejects.toMatchObject({ dependency: 'redis', fault: 'refused' })
  })

  test('explains what proved the relation', async () => {
    await storeTuples(
      'folder:1#parent@folder:2',
      'folder:2#viewer@group:1#member',
      'group:1#member@group:2#member',
      'group:2#member@user:anne',
    )
    const answer = await authority().explain(queryOf('folder:1#reader@user:anne'))
    expect(answer.decision).toEqual({ outcome: 'allowed' })
    expect(answer.trace.truncated).toBe(false)
    expect(proofOf(answer.trace)).toEqual([
      'folder:1#parent@folder:2',
      'folder:2#viewer@group:1#member',
      'group:1#member@group:2#member',
      'group:2#member@user:anne',
    ])
    expect(JSON.parse(JSON.stringify(answer.trace))).toEqual(answer.trace)
  })

  test('explains the failed attempts, within bounds', async () => {
    await storeTuples('folder:1#viewer@user:anne', 'folder:1#banned@user:anne')
    const { decision, trace } = await authority().explain(queryOf('folder:1#reader@user:anne'))
    expect(decision).toEqual({ outcome: 'denied' })
    const [exclusion] = trace.root.steps
    expect(exclusion).toMatchObject({ rule: 'exclusion', node: 'folder:1#reader' })
    expect(exclusion?.steps).toMatchObject([
      { rule: 'computed', node: 'folder:1#viewer', outcome: 'allowed' },
      { rule: 'computed', node: 'folder:1#banned', outcome: 'allowed' },
    ])
    const parents = Array.from({ length: 600 }, (_, at) => `folder:0#parent@folder:${at + 1}`)
    await storeTuples(...parents)
    const many = await authority({ maxDepth: 25, maxWork: 5_000 }).explain(
      queryOf('folder:0#viewer@user:anne'),
    )
    expect(many.decision).toEqual({ outcome: 'denied' })
    expect(many.trace.truncated).toBe(true)
    expect(JSON.stringify(many.trace).match(/"outcome"/g)?.length).toBe(500)
  })
})

/** Returns the tuples of the allowed steps, from the root down. */
function proofOf({ root }: RelationTrace): string[] {
  const tuples: string[] = []
  const visit = (step: RelationTrace['root']): void => {
    if (step.outcome !== 'allowed') return
    if (step.tuple !== undefined) tuples.push(step.tuple)
    step.steps.forEach(visit)
  }
  visit(root)
  return tuples
}

describe('a malformed reply', () => {
  const check = createRelationCheck(model)
  const query = queryOf('folder:1#viewer@user:anne')
  const whole = [1, '1795000000000001', 3, 0, []]

  test.each<[string, RedisReply | undefined]>([
    ['none', undefined],
    ['null', { result: null }],
    ['an error', { error: 'ERR wrong' }],
    ['a text', { result: 'allowed' }],
    ['true', { result: true }],
    ['an empty list', { result: [] }],
    ['a short list', { result: whole.slice(0, 4) }],
    ['a long list', { result: [...whole, 1] }],
    ['an unknown outcome', { result: [5, ...whole.slice(1)] }],
    ['an outcome as text', { result: ['1', ...whole.slice(1)] }],
    ['no version', { result: [1, null, 3, 0, []] }],
    ['a number as version', { result: [1, 1_795_000_000_000_001, 3, 0, []] }],
    ['a negative version', { result: [1, '-1', 3, 0, []] }],
    ['steps without a parent', { result: [1, '', 3, 0, 'x'] }],
  ])('is not a decision: %s', async (_, reply) => {
    const rest: RedisConnection = { keys: DEFAULT_KEYS, send: async () => [reply ?? {}] }
    const command = await check.command(DEFAULT_KEYS, query, { trace: true })
    const pending = check.explanationOf(rest, reply, command)
    await expect(pending).rejects.toMatchObject({ name: 'Unavailable', dependency: 'redis' })
  })

  test('to the full script is not a decision either', async () => {
    const sent: unknown[] = []
    const rest: RedisConnection = {
      keys: DEFAULT_KEYS,
      send: async ([command]) => {
        sent.push(command?.[0])
        return [{ error: 'NOSCRIPT No matching script' }]
      },
    }
    const command = await check.command(DEFAULT_KEYS, query)
    const pending = check.answerOf(rest, { error: 'NOSCRIPT No matching script' }, command)
    await expect(pending).rejects.toMatchObject({ fault: 'refused' })
    expect(sent).toEqual(['EVAL'])
  })
})
