/**
 * The specification of the check agrees with true, false and undefined in the well-founded model.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { usualOrLong } from '../../../harness/long.ts'
import { decide, TooLarge } from '../oracle.ts'
import { wellFounded } from '../well-founded.ts'
import { GROUPS, type Graph, graphs, REVIVED, SEED } from './graphs.ts'

const QUERIES = 10
/** 10,000 of them are 100,000 queries and take some minutes: `RELATION_GRAPHS=10000`. */
const RUNS = { seed: SEED, numRuns: Number(process.env.RELATION_GRAPHS ?? usualOrLong(200, 500)) }
const EXAMPLES: [Graph][] = [[REVIVED], [GROUPS]]
const MAX_STEPS = 20_000

const TRUTHS = { allowed: 'true', denied: 'false', unknown: 'undefined' } as const

test('the specification agrees with the alternating fixpoint', () => {
  const counts = { true: 0, false: 0, undefined: 0 }
  let tooLarge = 0
  fc.assert(
    fc.property(graphs(QUERIES), ({ model, tuples, queries }) => {
      for (const query of queries) {
        const { object, relation, subject, contextualTuples } = query
        try {
          const { decision } = decide(model, tuples, query, { maxSteps: MAX_STEPS })
          const truth = wellFounded(model, [...tuples, ...contextualTuples], subject)
          const expected = truth(`${object}#${relation}`)
          if (TRUTHS[decision.outcome] !== expected)
            throw new Error(`${JSON.stringify(query)}: ${decision.outcome}, expected ${expected}`)
          counts[expected] += 1
        } catch (error) {
          if (!(error instanceof TooLarge)) throw error
          tooLarge += 1
        }
      }
    }),
    { ...RUNS, examples: EXAMPLES },
  )
  if (process.env.RELATION_GRAPHS !== undefined) console.info(counts, tooLarge)
  expect(Math.min(...Object.values(counts))).toBeGreaterThan(0)
  expect(tooLarge).toBeLessThan(RUNS.numRuns / 100)
})
