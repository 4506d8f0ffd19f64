/**
 * The decisions of `portcullis.fga` over five levels of orders, by Redis and by the specification.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RedisHandle, startRedis } from '../../../../dev/redis.ts'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import type { RelationQuery } from '../../../../src/access/relations/decision-point.ts'
import { createRelationCheck } from '../../../../src/access/relations/redis/check.ts'
import { parseTuple, type RelationTuple } from '../../../../src/access/relations/tuple.ts'
import { ROOT } from '../../../harness/process.ts'
import { answersOf, restOver } from '../check/world.ts'
import { decide } from '../oracle.ts'

const model = compileModel(JSON.parse(readFileSync(join(ROOT, 'portcullis.model.json'), 'utf8')))

const tupleOf = (text: string): RelationTuple => {
  const tuple = parseTuple(text)
  if (tuple === undefined) throw new Error(`invalid tuple: ${text}`)
  return tuple
}

const TUPLES = [
  'organisation:acme#admin@user:ada',
  'organisation:acme#viewer@team:audit#member',
  'department:sales#organisation@organisation:acme',
  'department:sales#head@user:hugo',
  'team:audit#member@user:ines',
  'team:north#department@department:sales',
  'team:north#lead@user:lea',
  'team:north#member@team:coast#member',
  'team:coast#member@user:cy',
  'project:harbour#team@team:north',
  'project:harbour#editor@team:north#member',
  'order:1#project@project:harbour',
  'order:1#owner@user:lea',
  'order:1#approver@user:lea',
  'order:1#approver@user:paul',
  'order:2#project@project:harbour',
  'order:2#owner@user:otto',
  'order:3#owner@user:otto',
  'catalogue:public#viewer@user:*',
  'catalogue:drafts#editor@team:north#member',
].map(tupleOf)

let handle: RedisHandle
let redis: Redis
beforeAll(async () => {
  handle = await startRedis({ prefer: 'auto' })
  redis = new Redis(handle.url)
})
afterAll(async () => {
  redis.disconnect()
  await handle.close()
})

/** Returns the users that have a relation; the same by Redis and by the specification. */
async function usersWith(object: string, relation: string): Promise<readonly string[]> {
  const people = ['ada', 'hugo', 'ines', 'lea', 'cy', 'paul', 'otto', 'stranger']
  const queries = people.map(
    (name): RelationQuery => ({
      tenant: null,
      object,
      relation,
      contextualTuples: [],
      subject: `user:${name}`,
    }),
  )
  const answers = await answersOf(restOver(redis), createRelationCheck(model), TUPLES, queries)
  const decisions = queries.map((query) => decide(model, TUPLES, query).decision)
  expect(answers.map(({ decision }) => decision)).toEqual(decisions)
  return people.filter((_name, index) => decisions[index]?.outcome === 'allowed')
}

test('every level sees the orders below it, and no others', async () => {
  expect(await usersWith('order:1', 'viewer')).toEqual([
    ...['ada', 'hugo', 'ines', 'lea', 'cy', 'paul'],
  ])
  expect(await usersWith('order:2', 'viewer')).toEqual(['ada', 'hugo', 'ines', 'lea', 'cy', 'otto'])
  expect(await usersWith('order:3', 'viewer')).toEqual(['otto'])
})

test('a user never approves an own order, whatever other roles they have', async () => {
  expect(await usersWith('order:1', 'can_approve')).toEqual(['paul'])
})

test('an order is cancelled by its owner, as long as they are on the project', async () => {
  expect(await usersWith('order:1', 'can_cancel')).toEqual(['lea'])
  expect(await usersWith('order:2', 'can_cancel')).toEqual([])
})

test('a public catalogue is visible to everybody', async () => {
  expect(await usersWith('catalogue:public', 'viewer')).toHaveLength(8)
  expect(await usersWith('catalogue:drafts', 'viewer')).toEqual(['lea', 'cy'])
})
