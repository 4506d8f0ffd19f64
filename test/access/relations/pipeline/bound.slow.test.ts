/**
 * The staleness bound: how long a deleted relation is still used, over several isolates with one
 * test clock.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRelationCache } from '../../../../src/access/relations/cache.ts'
import {
  createRelationChecker,
  type RelationChecker,
} from '../../../../src/access/relations/checker.ts'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import {
  createRedisDecisionPoint,
  createRelationCheck,
} from '../../../../src/access/relations/redis/check.ts'
import { createRedisRest } from '../../../../src/redis/rest.ts'
import { NEVER } from '../../../harness/never.ts'
import { startWorld, type World } from './gateway.ts'
import { MODEL } from './model.ts'

const TRIALS = Number(process.env.RELATION_TRIALS ?? 20)
const ISOLATES = 3
const MAX_MS_A_TRIAL = 500
const BOUND_MS = 1_000
/** Maximum step of the clock between two requests. */
const MAX_STEP_MS = 300

let world: World
let nowMs = 1_000_000
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world?.close())

function isolate(maxStalenessMs: number): RelationChecker {
  const rest = createRedisRest({ ...world.redis, timeoutMs: 20_000 })
  const now = () => nowMs
  return createRelationChecker({
    decisionPoint: createRedisDecisionPoint(rest, createRelationCheck(compileModel(MODEL))),
    cache: createRelationCache({ maxStalenessMs, maxEntries: 100 }),
    now,
  })
}

const queryOf = (id: string, atLeast?: number) => ({
  tenant: null,
  object: `order:${id}`,
  relation: 'viewer',
  subject: 'user:anne',
  contextualTuples: [],
  ...(atLeast !== undefined && { atLeast }),
})
const isAllowed = async (checker: RelationChecker, id: string, atLeast?: number) =>
  JSON.stringify(await checker.check(queryOf(id, atLeast))) === '{"outcome":"allowed"}'

test.each([0, BOUND_MS])(
  'with a bound of %i ms, no caller is admitted later than that after a tuple was deleted',
  async (boundMs) => {
    const isolates = Array.from({ length: ISOLATES }, () => isolate(boundMs))
    const counts = { late: 0, lateByToken: 0, within: 0, denied: 0 }
    for (let trial = 0; trial < TRIALS; trial++) {
      const id = `t${boundMs}-${trial}`
      await world.write(null, `order:${id}#viewer@user:anne`)
      for (const checker of isolates) {
        nowMs += Math.random() * MAX_STEP_MS
        expect(await isAllowed(checker, id)).toBe(true)
      }
      const version = await world.remove(null, `order:${id}#viewer@user:anne`)
      const deletedMs = nowMs
      while (nowMs < deletedMs + BOUND_MS * 2) {
        for (const checker of isolates) {
          const allowed = await isAllowed(checker, id)
          if (!allowed) counts.denied += 1
          else if (nowMs >= deletedMs + boundMs) counts.late += 1
          else counts.within += 1
          if (Math.random() < 0.1 && (await isAllowed(checker, id, version)))
            counts.lateByToken += 1
        }
        nowMs += Math.random() * MAX_STEP_MS
      }
    }
    expect(counts.late + counts.lateByToken, NEVER).toBe(0)
    expect(counts.denied).toBeGreaterThan(TRIALS * ISOLATES)
    // The test can detect late admissions: within the bound, some callers are admitted.
    if (boundMs > 0) expect(counts.within).toBeGreaterThan(TRIALS)
  },
  Math.max(60_000, TRIALS * MAX_MS_A_TRIAL),
)
