/** Figures, tables and notes of the scenario `tokens`. */
import type { Summary } from '../measure/rounds.ts'
import { noiseNotes } from '../measure/statistics.ts'
import { type Figure, figure, type Table } from '../scenario.ts'
import { type CaseId, TOKENS_BESIDE } from './cases.ts'
import type { Allocations, OperationFigures } from './measure-operations.ts'
import type { NativeTimes } from './native.ts'
import type { OperationId } from './operations.ts'

/** From this on, the load process is the bottleneck. */
const SATURATED_CORES = 0.9
const MICROS_PER_MS = 1_000
const QUANTILES = ['p50', 'p95', 'p99'] as const

export interface CaseFigures extends Summary {
  readonly requiredPerSecond: number | undefined
}

export function operationFigures(
  operations: readonly OperationFigures[],
  allocations: Allocations,
): readonly Figure[] {
  return [
    ...operations.map(({ id, title, micros }) =>
      figure(`${id}-time`, title, micros, 'us', besideOf(id)),
    ),
    ...operations.map(({ id, title }) =>
      figure(`${id}-heap`, `${title}: heap allocated`, allocations[id], 'bytes'),
    ),
  ]
}

export function caseFigures({ title, ...figures }: CaseFigures): readonly Figure[] {
  const id = figures.id as CaseId
  const { requestsPerSecond, requiredPerSecond: required, cpuMicros } = figures
  const aim = required === undefined ? {} : { aim: { at: 'least', value: required } as const }
  const quantiles = id === 'validate-cached' ? QUANTILES : []
  return [
    figure(`${id}-rate`, `${title}: a second`, requestsPerSecond, '1/s', {
      ...besideOf(id),
      ...aim,
    }),
    figure(`${id}-cpu`, `${title}: CPU of one`, cpuMicros, 'us'),
    ...quantiles.map((name) =>
      figure(`${id}-${name}`, `${title}: ${name}`, figures[`${name}Ms`], 'ms', {
        beside: ['subzero-cached', 'ramparts-cached'],
      }),
    ),
  ]
}

function besideOf(id: OperationId | CaseId): Pick<Figure, 'beside'> {
  const published = TOKENS_BESIDE[id]
  return published === undefined ? {} : { beside: [published] }
}

/** Returns the operations inside an isolate, with the same work in Node. */
export function operationTable(
  figures: readonly OperationFigures[],
  allocations: Allocations,
  native: NativeTimes,
): Table {
  const headings = ['operation', 'us', 'CPU us', 'per s', 'heap bytes', 'Node us', 'x']
  const rows = figures.map(({ id, title, micros, cpuMicros, perSecond }) => {
    const inNode = native[id]
    return [
      title,
      short(micros),
      short(cpuMicros),
      perSecond.toLocaleString('en'),
      allocations[id].toLocaleString('en'),
      ...(inNode === undefined ? ['', ''] : [short(inNode), (inNode / micros).toFixed(2)]),
    ]
  })
  return {
    title: 'In an isolate of workerd, one after another, without an empty batch',
    headings,
    rows,
  }
}

export const OPERATION_NOTES: readonly string[] = [
  'heap bytes: allocations of one operation, with garbage, without buffers outside the heap.',
  'Node: the same operation with OpenSSL in Node, on the same machine; x: as a multiple of ours.',
]

export function caseTable(figures: readonly CaseFigures[]): Table {
  const headings = ['over HTTP', 'req/s', 'p50 ms', 'p95 ms', 'p99 ms', 'Redis calls', 'CPU us']
  const shares = ['CPU s/1,000', 'gateway', 'Redis', 'load']
  const rows = figures.map((each) => [
    each.title,
    each.requestsPerSecond.toLocaleString('en'),
    each.p50Ms.toFixed(2),
    each.p95Ms.toFixed(2),
    each.p99Ms.toFixed(2),
    each.redisCalls.toFixed(2),
    each.cpuMicros.toFixed(0),
    (each.cpuMicros / MICROS_PER_MS).toFixed(3),
    each.gatewayCores.toFixed(2),
    each.redisCores.toFixed(2),
    each.loadCores.toFixed(2),
  ])
  return {
    title:
      'Over HTTP, under workerd serve (one isolate); gateway, Redis, load: cores that each used',
    headings: [...headings, ...shares],
    rows,
  }
}

/** Returns notes about cases whose load process was the bottleneck, and about noise. */
export function caseNotes(figures: readonly CaseFigures[]): readonly string[] {
  const saturated = figures.filter(({ loadCores }) => loadCores >= SATURATED_CORES)
  return [
    ...saturated.map(({ title }) => `${title}: the load was at its limit.`),
    ...noiseNotes(figures),
  ]
}

/** Formats microseconds with three significant digits. */
function short(micros: number): string {
  return micros.toFixed(micros < 10 ? 2 : micros < 100 ? 1 : 0)
}
