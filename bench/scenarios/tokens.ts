/** Cost of issuing and validating tokens. */
import { measureRounds } from '../measure/rounds.ts'
import { noneOf, sumOf } from '../measure/statistics.ts'
import { USUAL } from '../options.ts'
import type { Scenario } from '../scenario.ts'
import { queueAddressOf } from '../stack/gateway.ts'
import { caseContestant, TOKENS_BESIDE } from '../tokens/cases.ts'
import {
  type CaseFigures,
  caseFigures,
  caseNotes,
  caseTable,
  OPERATION_NOTES,
  operationFigures,
  operationTable,
} from '../tokens/figures.ts'
import { measureAllocations, measureOperations } from '../tokens/measure-operations.ts'
import { measureNative } from '../tokens/native.ts'
import { startTokens } from '../tokens/preflight.ts'

/** A batch needs no pause to settle and no latencies, so it is measured for less time. */
const OPERATION_SHARE = 0.25

export const tokens: Scenario = {
  id: 'tokens',
  title: 'Cost of tokens',
  measures:
    'Issuing and verifying tokens: each operation alone in an isolate, and over HTTP at the token ' +
    'endpoint, at a validating Worker and through the whole pipeline. Also the same operations in Node.',
  answers: [...Object.values(TOKENS_BESIDE), 'subzero-cached', 'ramparts-cached'],
  asserts: [
    'Before the measurement, forged tokens, unknown references and wrong secrets are refused.',
    'No token is issued twice, and some of the issued tokens open the gateway.',
    'The validating Worker returns the subject of each token, and whether it was cached.',
    'Redis is called exactly as often as expected.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 15, full: 120 },
  async run(context) {
    const { effort, directory, onProgress, detail = USUAL[effort] } = context
    const { gateway, cases } = await startTokens(context)
    const { backends, bundle, variables } = gateway
    const { connections, seconds, warmUpSeconds, rounds } = detail
    const operationSeconds = seconds * OPERATION_SHARE
    const measured = { seconds: operationSeconds, rounds }
    const operations = await measureOperations(gateway, measured, onProgress)
    const summaries = await measureRounds(
      cases.map((each) => caseContestant(each, gateway)),
      { rounds, seconds, warmUpSeconds, pace: { connections }, backends, onProgress },
    )
    const http = summaries.map(
      (summary, index): CaseFigures => ({
        ...summary,
        requiredPerSecond: cases[index]?.requiredPerSecond,
      }),
    )
    await gateway.close()
    onProgress('allocations of operations')
    const queueAddress = queueAddressOf(backends)
    const allocations = await measureAllocations({ bundle, variables, directory, queueAddress })
    onProgress('the same operations in Node')
    const native = measureNative(operationSeconds)
    const answers = sumOf(http, (each) => sumOf(each.rounds, ({ requests }) => requests))
    return {
      figures: [...operationFigures(operations, allocations), ...http.flatMap(caseFigures)],
      checks: [{ what: 'wrong responses', seen: noneOf(answers) }],
      plots: [
        {
          id: 'operations',
          title: 'Time of an operation in an isolate',
          kind: 'bar',
          x: { title: 'operation' },
          y: { title: 'us', log: true },
          categories: operations.map(({ title }) => title),
          series: [{ name: 'us', points: operations.map(({ micros }) => micros) }],
        },
      ],
      tables: [operationTable(operations, allocations, native), caseTable(http)],
      notes: [...OPERATION_NOTES, ...caseNotes(http)],
      details: {
        options: { seconds, operationSeconds, warmUpSeconds, rounds, connections },
        operations,
        allocations,
        native,
        http,
      },
    }
  },
}
