/** Compares OpenFGA with our specification of the check, over the same random models and tuples. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import type { RelationDecision } from '../../../../src/access/relations/decision-point.ts'
import { ModelInvalid, type RelationModel } from '../../../../src/access/relations/model.ts'
import {
  mistakeOfRelation,
  mistakeOfSubject,
  mistakeOfTuple,
} from '../../../../src/access/relations/permitted.ts'
import { formatTuple, type RelationTuple } from '../../../../src/access/relations/tuple.ts'
import { createOpenfgaDecisionPoint } from '../../../../src/features/openfga/decision-point.ts'
import { usualOrLong } from '../../../harness/long.ts'
import { graphs, SEED } from '../check/graphs.ts'
import { decide } from '../oracle.ts'
import type { Exchange } from './http-recording.ts'
import { modelJson } from './model-json.ts'
import {
  type OpenfgaServer,
  openfgaRecording,
  openfgaServers,
  startRecorded,
} from './openfga-server.ts'
import { TOKEN } from './servers.ts'

const MODELS = usualOrLong(60, 150)
const QUERIES = 40
const MAX_DEPTH = 25

/**
 * OpenFGA refuses duplicate tuples, tuples that its model does not permit, and tuples without
 * content.
 */
function writable(model: RelationModel, tuples: readonly RelationTuple[]): RelationTuple[] {
  const good = tuples.filter(
    (tuple) =>
      mistakeOfTuple(model, tuple) === undefined &&
      tuple.subject !== `${tuple.object}#${tuple.relation}`,
  )
  return [...new Map(good.map((tuple) => [formatTuple(tuple), tuple])).values()]
}

function compiled(json: object): RelationModel | undefined {
  try {
    return compileModel(json)
  } catch (error) {
    if (error instanceof ModelInvalid) return undefined
    throw error
  }
}

const outcomeOf = (decision: RelationDecision) =>
  decision.outcome === 'unknown' ? decision.why : decision.outcome

/** Counts the decisions of our specification and of the server, as `ours, theirs`. */
async function compared(server: OpenfgaServer, models: number) {
  const outcomes = new Map<string, number>()
  let refused = 0
  for (const graph of fc.sample(graphs(QUERIES), { numRuns: models, seed: SEED })) {
    const json = modelJson(graph.model)
    const model = compiled(json)
    if (model === undefined) {
      refused++
      await expect(server.store(json, [])).rejects.toThrow('authorization-models: 400')
      continue
    }
    const tuples = writable(model, graph.tuples)
    const keys = tuples.map(({ subject, ...rest }) => ({ ...rest, user: subject }))
    const place = await server.store(json, keys)
    const openfga = createOpenfgaDecisionPoint({
      url: server.url,
      token: TOKEN,
      timeoutMs: 5_000,
      stores: new Map([['', place]]),
    })
    for (const one of graph.queries) {
      if (mistakeOfRelation(model, one) || mistakeOfSubject(model, one.subject)) continue
      const query = { ...one, contextualTuples: writable(model, one.contextualTuples) }
      const ours = outcomeOf(decide(model, tuples, query, { maxDepth: MAX_DEPTH }).decision)
      const theirs = outcomeOf((await openfga.check(query)).decision)
      const pair = `${ours}, ${theirs}`
      outcomes.set(pair, (outcomes.get(pair) ?? 0) + 1)
    }
  }
  return { outcomes, refused }
}

describe.each(openfgaServers('agreement', TOKEN))(
  '$server and the specification of the check',
  ({ start }) => {
    let server: OpenfgaServer
    beforeAll(async () => {
      server = await start()
    })
    afterAll(() => server.stop())

    test('accept the same models and decide alike, except for cycles in an exclusion', async () => {
      const { outcomes, refused } = await compared(server, MODELS)
      console.info('decisions as `ours, theirs`:', Object.fromEntries(outcomes), { refused })
      const count = (pair: string) => outcomes.get(pair) ?? 0
      expect(refused).toBeGreaterThan(0)
      expect(count('allowed, allowed')).toBeGreaterThan(100)
      expect(count('denied, denied')).toBeGreaterThan(100)
      // OpenFGA denies a query with a cycle in an exclusion. The specification reports the cycle,
      // or finds that it is irrelevant.
      const others = [...outcomes.keys()].filter(
        (pair) => !['allowed, allowed', 'denied, denied'].includes(pair),
      )
      for (const pair of others)
        expect(['negated_cycle, denied', 'allowed, denied']).toContain(pair)
      expect(count('allowed, denied')).toBeLessThan(count('allowed, allowed') / 500)
    })
  },
)

test('a single changed response in the recording is detected', async () => {
  const [yes, no] = ['"allowed":true', '"allowed":false']
  const recording = openfgaRecording('agreement')
  const at = recording.findIndex(([, , answer]) => answer.includes(no))
  const changed = recording.map(([request, status, answer], index): Exchange => {
    return [request, status, index === at ? answer.replace(no, yes) : answer]
  })
  const server = await startRecorded(changed, TOKEN)
  try {
    const { outcomes } = await compared(server, 5)
    expect(outcomes.get('denied, allowed')).toBe(1)
  } finally {
    await server.stop()
  }
})
