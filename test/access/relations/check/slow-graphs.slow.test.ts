/** Graphs that are built to be slow are answered correctly or not at all, in bounded time. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import {
  createRedisDecisionPoint,
  createRelationCheck,
  RELATION_LIMITS,
} from '../../../../src/access/relations/redis/check.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { SLOW_GRAPHS, SLOW_MODEL, SLOW_OBJECT, SLOW_RELATION } from './slow-graphs.ts'
import { restOver, writesOf } from './world.ts'

/** A relation that was started is visited to the end of its own definition. */
const BEGUN = 5
/** Members in one command. */
const CHUNK = 2_000

describe('graphs that are built to be slow', () => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis()
  })
  afterAll(() => redis.close())

  test.each(SLOW_GRAPHS.map((graph) => [graph.title, graph] as const))('%s', async (_, graph) => {
    const rest = restOver(redis.direct)
    for (const [name = '', key = '', ...pairs] of await writesOf([...graph.tuples()], graph.id))
      for (let at = 0; at < pairs.length; at += CHUNK)
        await rest.send([[name, key, ...pairs.slice(at, at + CHUNK)]])
    const check = createRelationCheck(compileModel(SLOW_MODEL))
    const authority = createRedisDecisionPoint(rest, check)
    for (const { subject, isViewer } of graph.questions) {
      const query = {
        tenant: graph.id,
        object: SLOW_OBJECT,
        relation: SLOW_RELATION,
        subject,
        contextualTuples: [],
      }
      const { decision } = await authority.check(query)
      if (decision.outcome !== 'unknown')
        expect(decision.outcome).toBe(isViewer ? 'allowed' : 'denied')
      const explained = await authority.explain(query)
      expect(explained.decision).toEqual(decision)
      expect(explained.trace.work).toBeLessThanOrEqual(RELATION_LIMITS.maxWork + BEGUN)
    }
  })

  test('a subject in few groups gets a decision, however many groups exist', async () => {
    const authority = createRedisDecisionPoint(
      restOver(redis.direct),
      createRelationCheck(compileModel(SLOW_MODEL)),
    )
    const checkFor = (id: string, subject: string) =>
      authority.check({
        tenant: id,
        object: SLOW_OBJECT,
        relation: SLOW_RELATION,
        subject,
        contextualTuples: [],
      })
    for (const id of ['slow-nested', 'slow-tree', 'slow-wide', 'slow-dense']) {
      expect((await checkFor(id, 'user:last')).decision).toEqual({ outcome: 'allowed' })
      expect((await checkFor(id, 'user:stranger-0')).decision).toEqual({ outcome: 'denied' })
    }
  })
})
