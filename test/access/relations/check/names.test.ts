/** Names of a model within its script: every valid name works, and no other is accepted. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RelationModel } from '../../../../src/access/relations/model.ts'
import {
  createRedisDecisionPoint,
  createRelationCheck,
} from '../../../../src/access/relations/redis/check.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { restOver, writesOf } from './world.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
afterAll(() => redis.close())

const modelOf = (type: string, relation: string): RelationModel => ({
  types: new Map([
    ['user', new Map()],
    [
      type,
      new Map([
        [
          relation,
          {
            userset: { kind: 'direct' },
            directTypes: [
              { type: 'user', kind: 'object' },
              { type: 'user', kind: 'wildcard' },
              { type, kind: 'userset', relation },
            ],
          },
        ],
      ]),
    ],
  ]),
})

test.each(['end', 'nil', 'function', '__index', 'constructor', '_', 'a-b', 'r', 'x'.repeat(63)])(
  '%s is accepted as the name of a type and of a relation',
  async (name) => {
    const rest = restOver(redis.direct)
    const query = { tenant: null, relation: name, contextualTuples: [] }
    const subject = `${name}:2#${name}`
    const tuples = [
      { object: `${name}:1`, relation: name, subject },
      { object: `${name}:2`, relation: name, subject: 'user:anne' },
    ]
    await rest.send([['FLUSHDB'], ...(await writesOf(tuples))])
    const authority = createRedisDecisionPoint(rest, createRelationCheck(modelOf(name, name)))
    const checkFor = (subject: string) =>
      authority.check({ ...query, object: `${name}:1`, subject })
    expect((await checkFor('user:anne')).decision).toEqual({ outcome: 'allowed' })
    expect((await checkFor(subject)).decision).toEqual({ outcome: 'allowed' })
    expect((await checkFor('user:bob')).decision).toEqual({ outcome: 'denied' })
  },
)

test.each(["a'b", 'a\\', 'a\nb', 'a]]', 'a b', '', 'a|b', 'é', 'a#b', 'a:*', 'x'.repeat(64)])(
  '%j is refused as a name, and no script is created',
  (name) => {
    expect(() => createRelationCheck(modelOf('doc', name))).toThrow(TypeError)
    expect(() => createRelationCheck(modelOf(name, 'viewer'))).toThrow(TypeError)
  },
)
