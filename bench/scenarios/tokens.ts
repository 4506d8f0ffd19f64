/** What issuing and validating tokens costs. */
import { startBackends } from '../backends.ts'
import { USUAL } from '../options.ts'
import type { Figure, Scenario } from '../scenario.ts'
import { type CaseId, REQUIRED_ISSUED, REQUIRED_VALIDATED } from '../token-costs/cases.ts'
import type { Allocations } from '../token-costs/measure-allocations.ts'
import type { CaseFigures } from '../token-costs/measure-cases.ts'
import type { OperationFigures } from '../token-costs/measure-operations.ts'
import { measureTokens } from '../token-costs/measure-tokens.ts'
import type { OperationId } from '../token-costs/operations.ts'
import { TOKENS_BESIDE } from '../token-costs/reference.ts'
import { caseNotes, caseTable, operationNotes, operationTable } from '../token-costs/report.ts'

export const tokens: Scenario = {
  id: 'tokens',
  title: 'What tokens cost',
  measures:
    'Making and checking tokens: each operation by itself in an isolate, and over HTTP at the ' +
    'token endpoint, at a validating Worker and through the whole pipeline.',
  answers: [...Object.values(TOKENS_BESIDE), 'subzero-cached'],
  asserts: [
    'Forged tokens, unknown references and wrong secrets are refused, before anything is measured.',
    'No token is issued twice, and some of those issued open the gateway.',
    'The validating Worker answers each token with its subject, and says truly whether it knew it.',
    'Redis is called exactly as often as it should be.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 15, full: 150 },
  async run({ effort, directory, shutdown, onProgress, detail = USUAL[effort] }) {
    const backends = await startBackends()
    shutdown.defer(backends.close)
    const costs = await measureTokens({
      ...{ options: detail, backends, directory, shutdown, onProgress },
    })
    await backends.close()
    const { operations, allocations, http, peers } = costs
    const answers = http
      .flatMap(({ rounds }) => rounds)
      .reduce((sum, { requests }) => sum + requests, 0)
    return {
      figures: [
        ...operations.map(timeFigure),
        ...operations.map((operation) => allocationFigure(operation, allocations)),
        ...http.flatMap(caseFigures),
      ],
      checks: [{ what: 'answers that were wrong', seen: `0 of ${answers.toLocaleString('en')}` }],
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
      tables: [operationTable(operations, allocations, peers), caseTable(http)],
      notes: [...operationNotes(peers), ...caseNotes(http)],
      details: costs,
    }
  },
}

function timeFigure({ id, title, micros }: OperationFigures): Figure {
  return { id: `${id}-time`, title, value: micros, unit: 'us', ...besideOf(id) }
}

function allocationFigure(
  { id, title }: Pick<OperationFigures, 'id' | 'title'>,
  allocations: Allocations,
): Figure {
  return {
    id: `${id}-heap`,
    title: `${title}: heap allocated`,
    value: allocations[id],
    unit: 'bytes',
  }
}

const QUANTILES = ['p50', 'p95', 'p99'] as const

function caseFigures({ id, title, ...figures }: CaseFigures): readonly Figure[] {
  return [
    {
      id: `${id}-rate`,
      title: `${title}: a second`,
      value: figures.requestsPerSecond,
      unit: '1/s',
      ...besideOf(id),
      ...aimOf(id),
    },
    { id: `${id}-cpu`, title: `${title}: CPU of one`, value: figures.cpuMicros, unit: 'us' },
    ...(id === 'validate-cached' ? QUANTILES : []).map(
      (name): Figure => ({
        id: `${id}-${name}`,
        title: `${title}: ${name}`,
        value: figures[`${name}Ms`],
        unit: 'ms',
        beside: ['subzero-cached'],
      }),
    ),
  ]
}

function besideOf(id: OperationId | CaseId): Pick<Figure, 'beside'> {
  const published = TOKENS_BESIDE[id]
  return published === undefined ? {} : { beside: [published] }
}

function aimOf(id: CaseId): Pick<Figure, 'aim'> {
  if (id === 'issue-jwt') return { aim: { at: 'least', value: REQUIRED_ISSUED } }
  if (id === 'validate-cached') return { aim: { at: 'least', value: REQUIRED_VALIDATED } }
  return {}
}
