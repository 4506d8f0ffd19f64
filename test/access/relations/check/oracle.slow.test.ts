/** The script decides as the specification does, over random models, tuples and queries. */
import { join } from 'node:path'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readLuaFiles, withoutSpaces } from '../../../../dev/lua/embed.ts'
import { type RedisHandle, startRedis } from '../../../../dev/redis.ts'
import type { RelationDecision } from '../../../../src/access/relations/decision-point.ts'
import { createRelationCheck } from '../../../../src/access/relations/redis/check.ts'
import { relationScript } from '../../../../src/access/relations/redis/script.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { CHECK_SCRIPT } from '../../../../src/redis/scripts.generated.ts'
import { usualOrLong } from '../../../harness/long.ts'
import { ROOT } from '../../../harness/process.ts'
import { decide, TooLarge } from '../oracle.ts'
import { FOREIGN_PARENT, GROUPS, type Graph, graphs, REVIVED, SEED } from './graphs.ts'
import { answersOf, restOver } from './world.ts'

/** The script with the names of its source, which change no instruction of it. */
const WITH_NAMES = await readLuaFiles(join(ROOT, 'src')).embeddedOf(
  join(ROOT, 'src/access/relations/redis/check.lua'),
  true,
)
const QUERIES = 10
const EXAMPLES: [Graph][] = [[REVIVED], [GROUPS], [FOREIGN_PARENT]]
/** 10,000 of them are 100,000 queries and take some minutes: `RELATION_GRAPHS=10000`. */
const RUNS = { seed: SEED, numRuns: Number(process.env.RELATION_GRAPHS ?? usualOrLong(250, 500)) }
const MAX_STEPS = 20_000
/** A work limit that a small graph may exceed. */
const FEW = 100
/** Redis keeps every script until SCRIPT FLUSH. */
const SCRIPTS = 500

interface Counts {
  /** Number of equal decisions by outcome. */
  agreed: Record<string, number>
  /**
   * Redis decided beyond the depth of the specification, because it had visited the object on a
   * shorter path.
   */
  beyondDepth: number
  /**
   * Redis gave up earlier than the specification, because it had visited the object on a longer
   * path.
   */
  tooDeep: number
  outOfWork: number
  tooLarge: number
}

const nameOf = (one: RelationDecision | undefined): string =>
  (one?.outcome === 'unknown' ? one.why : one?.outcome) ?? 'nothing'

describe.each(['auto', 'embedded'] as const)('the check over Redis (%s)', (prefer) => {
  let handle: RedisHandle
  let redis: Redis
  beforeAll(async () => {
    handle = await startRedis({ prefer })
    redis = new Redis(handle.url)
  })
  afterAll(async () => {
    redis.disconnect()
    await handle.close()
  })

  async function compare(rest: RedisConnection, graph: Graph, counts: Counts): Promise<void> {
    const { model, tuples, queries, maxDepth, maxWork } = graph
    const check = createRelationCheck(model, { maxDepth, maxWork })
    const answers = await answersOf(rest, check, tuples, queries)
    for (const [index, query] of queries.entries()) {
      const actual = nameOf(answers[index]?.decision)
      try {
        const { decision, isCut } = decide(model, tuples, query, { maxDepth, maxSteps: MAX_STEPS })
        const expected = nameOf(decision)
        if (actual === expected) counts.agreed[actual] = (counts.agreed[actual] ?? 0) + 1
        else if (actual === 'max_work_exceeded' && maxWork < FEW) counts.outOfWork += 1
        else if (isCut && actual === 'max_depth_exceeded') counts.tooDeep += 1
        else {
          const whole = decide(model, tuples, query, { maxSteps: MAX_STEPS })
          if (!isCut || actual !== nameOf(whole.decision))
            throw new Error(`${JSON.stringify(query)}: ${actual}, expected ${expected}`)
          counts.beyondDepth += 1
        }
      } catch (error) {
        if (!(error instanceof TooLarge)) throw error
        counts.tooLarge += 1
      }
    }
  }

  const countsNow = (): Counts => ({
    agreed: {},
    beyondDepth: 0,
    tooDeep: 0,
    outOfWork: 0,
    tooLarge: 0,
  })

  test('agrees with the specification over random graphs', async () => {
    const counts = countsNow()
    let runs = 0
    await fc.assert(
      fc.asyncProperty(graphs(QUERIES), async (graph) => {
        runs += 1
        if (runs % SCRIPTS === 0) await redis.script('FLUSH')
        await compare(restOver(redis), graph, counts)
      }),
      // The embedded Redis is slow; few runs show that it works.
      { ...RUNS, examples: EXAMPLES, ...(prefer === 'embedded' && { numRuns: RUNS.numRuns / 5 }) },
    )
    if (process.env.RELATION_GRAPHS !== undefined) console.info(counts)
    if (prefer === 'embedded') return
    expect(Object.keys(counts.agreed).sort()).toEqual([
      'allowed',
      'denied',
      'max_depth_exceeded',
      'negated_cycle',
    ])
    expect(Math.min(counts.beyondDepth, counts.outOfWork)).toBeGreaterThan(0)
    expect(counts.tooLarge).toBeLessThan(RUNS.numRuns / 100)
  })

  test('decides the same in an explanation', async () => {
    await fc.assert(
      fc.asyncProperty(graphs(1), async ({ model, tuples, queries, maxDepth, maxWork }) => {
        const check = createRelationCheck(model, { maxDepth, maxWork })
        const rest = restOver(redis)
        const [answer] = await answersOf(rest, check, tuples, queries)
        for (const query of queries) {
          const command = await check.command(DEFAULT_KEYS, query, { trace: true })
          const [reply] = await rest.send([command])
          const { decision, trace } = await check.explanationOf(rest, reply, command)
          expect(decision).toEqual(answer?.decision)
          expect(trace.root).toMatchObject(decision)
          expect(trace.root.node).toBe(`${query.object}#${query.relation}`)
        }
      }),
      { seed: SEED, numRuns: 100 },
    )
  })

  if (prefer === 'embedded') return
  test.each([
    ['a cycle that includes an exclusion', 'less = NEGATED', 'less = DENIED'],
    ['a wildcard that is ignored', "wildcard = kind .. ':*'", 'wildcard = nil'],
    ['denials that are cached whatever they depend on', 'cell = hangs_on, hops', 'hops'],
    [
      'denials that are cached although they depend on an allowed result',
      'over = outcome',
      'over = DENIED',
    ],
    ['usersets that the model does not permit', 'rule.names[into_kind]', 'true'],
    ['memberships that the model does not permit', 'rule.names[from_kind]', 'true'],
    ['memberships through a wildcard', 'if wildcard then', 'if false then'],
    ['memberships of the same object', 'rule and rule.makes', 'nil'],
    ['a subject with too many memberships', "'too many'", "'all'"],
    ['objects that the model does not permit', 'names[into] and', ''],
    ['contextual tuples', 'index = 12, #ARGV, 2', 'index = 12, 0, 2'],
    ['an exclusion with an unknown subtracted part', 'less > base and less or base', 'base'],
  ])('differs from the specification if the script is wrong about %s', async (_, right, wrong) => {
    const found = await fc.check(
      fc.asyncProperty(graphs(QUERIES), async (graph) => {
        const text = relationScript(graph.model).replace(CHECK_SCRIPT, () => WITH_NAMES)
        const sought = withoutSpaces(right)
        if (!text.includes(sought))
          throw new TypeError('the script no longer contains the text to replace')
        const changed = text.replaceAll(sought, ` ${withoutSpaces(wrong)} `)
        const rest = restOver(redis)
        const mutant: RedisConnection = {
          keys: DEFAULT_KEYS,
          send: (commands) =>
            rest.send(
              commands.map(([name = '', ...args]) =>
                name === 'EVALSHA' ? ['EVAL', changed, ...args.slice(1)] : [name, ...args],
              ),
            ),
        }
        await compare(mutant, graph, countsNow())
      }),
      // The graphs of the comparison above, so that it would find each of these mistakes.
      { ...RUNS, endOnFailure: true, examples: EXAMPLES },
    )
    expect(found.errorInstance).toMatchObject({ message: expect.stringContaining(', expected ') })
  })
})
