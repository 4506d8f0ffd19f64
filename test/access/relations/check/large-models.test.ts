/** Large models over small graphs: the work that makes no calls to Redis is bounded as well. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import {
  createRedisDecisionPoint,
  createRelationCheck,
  RELATION_LIMITS,
} from '../../../../src/access/relations/redis/check.ts'
import type { RelationTuple } from '../../../../src/access/relations/tuple.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { restOver, writesOf } from './world.ts'

/** Relations that are computed from each other, with tuples only at the last one. */
const ROLES = 100
const FOLDERS = 60
const GROUPS = 390
/** Number of times that one relation reads the same tuple. */
const REPEATED = 900
const LEVELS = 24

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
afterAll(() => redis.close())

const given = { this: {} }
const computed = (relation: string) => ({ computedUserset: { relation } })
const fromParent = (relation: string) => ({
  tupleToUserset: { tupleset: { relation: 'parent' }, computedUserset: { relation } },
})
const union = (...child: object[]) => ({ union: { child } })
const direct = (...types: object[]) => ({ directly_related_user_types: types })
const users = direct({ type: 'user' })

/** `role0` is computed from `role1`, and so on; the last one is `last`. */
const roles = (last: object): Record<string, object> => ({
  ...Object.fromEntries(
    Array.from({ length: ROLES }, (_, at) => [`role${at}`, computed(`role${at + 1}`)]),
  ),
  [`role${ROLES}`]: last,
})

const many = <Item>(count: number, itemOf: (at: number) => Item) =>
  Array.from({ length: count }, (_, at) => itemOf(at))

async function explained(
  types: readonly object[],
  tuples: readonly RelationTuple[],
  relation: string,
) {
  const rest = restOver(redis.direct)
  await rest.send([['FLUSHDB'], ...(await writesOf(tuples))])
  const json = { schema_version: '1.1', type_definitions: [{ type: 'user' }, ...types] }
  const authority = createRedisDecisionPoint(rest, createRelationCheck(compileModel(json)))
  const subject = 'user:anne'
  const query = { tenant: null, object: 'doc:0', relation, subject, contextualTuples: [] }
  const answer = await authority.explain(query)
  expect((await authority.check(query)).decision).toEqual(answer.decision)
  return answer
}

test('a chain of a hundred computed relations on each of sixty parents', async () => {
  const doc = {
    type: 'doc',
    relations: { parent: given, ...roles(union(given, fromParent('role0'))) },
    metadata: { relations: { parent: direct({ type: 'doc' }), [`role${ROLES}`]: users } },
  }
  const parents = (count: number) =>
    many(count, (at) => ({ object: 'doc:0', relation: 'parent', subject: `doc:p${at}` }))
  const few = await explained([doc], parents(FOLDERS / 4), 'role0')
  expect(few.decision).toEqual({ outcome: 'denied' })
  const { decision, trace } = await explained([doc], parents(FOLDERS), 'role0')
  expect(decision).toEqual({ outcome: 'unknown', why: 'max_work_exceeded' })
  expect(trace.work).toBeLessThan(RELATION_LIMITS.maxWork)
})

test('a chain of a hundred computed relations on each group of the subject', async () => {
  const group = {
    type: 'group',
    relations: roles(given),
    metadata: { relations: { [`role${ROLES}`]: users } },
  }
  const doc = {
    type: 'doc',
    relations: { viewer: given },
    metadata: { relations: { viewer: direct({ type: 'group', relation: 'role0' }) } },
  }
  const memberships = many(GROUPS, (at) => ({
    object: `group:${at}`,
    relation: `role${ROLES}`,
    subject: 'user:anne',
  }))
  const viewers = (count: number) =>
    many(count, (at) => ({
      object: 'doc:0',
      relation: 'viewer',
      subject: `group:other${at}#role0`,
    }))
  const few = await explained([group, doc], [...memberships, ...viewers(10)], 'viewer')
  expect(few.decision).toEqual({ outcome: 'denied' })
  const { decision } = await explained(
    [group, doc],
    [...memberships, ...viewers(FOLDERS)],
    'viewer',
  )
  expect(decision).toEqual({ outcome: 'unknown', why: 'max_work_exceeded' })
})

test('a relation that reads the same tuple many times on every level', async () => {
  const viewer = {
    difference: { base: fromParent('above'), subtract: union(...many(REPEATED, () => given)) },
  }
  const doc = {
    type: 'doc',
    relations: { parent: given, viewer, above: union(given, computed('viewer')) },
    metadata: { relations: { parent: direct({ type: 'doc' }), viewer: users, above: users } },
  }
  const tuples = [
    ...many(LEVELS, (at) => ({
      object: `doc:${at}`,
      relation: 'parent',
      subject: `doc:${at + 1}`,
    })),
    { object: `doc:${LEVELS}`, relation: 'above', subject: 'user:anne' },
  ]
  const { decision, trace } = await explained([doc], tuples, 'viewer')
  expect(decision).toEqual({ outcome: 'unknown', why: 'max_work_exceeded' })
  expect(trace.work).toBeLessThanOrEqual(RELATION_LIMITS.maxWork)
})
