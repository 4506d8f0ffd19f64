/** Computes what each stage of the pipeline adds to the stages before it. */
import type { PacedSample, Summary } from '../measure/rounds.ts'
import { median, medianOf, ratio, ratioOf, rounded } from '../measure/statistics.ts'
import type { PublishedId } from '../published.ts'
import type { Runtime } from '../runtimes.ts'
import { type Figure, figure, type Plot, ratioFigure, type Table } from '../scenario.ts'
import { BASELINE } from './layers.ts'

/** Target for the CPU time of the full pipeline, as a multiple of passthrough. */
const MAX_CPU_RATIO = 2.4
/** Target for refusals without a call: a refused flood must cost less than an admitted one. */
const REFUSAL_AIM = { at: 'most', value: 0.75, stretch: 0.6 } as const
/** Maximum time that the full pipeline may add to a request, and the target for it. */
const BUDGET_MS = 5
const TARGET_MS = 1.25
const DIGITS = 3
const PERCENT = 100

/** One layer compared with another. The difference is the cost of a stage. */
export interface Step {
  readonly id: string
  readonly title: string
  /** Ids of the two layers. */
  readonly of: string
  readonly over: string
  readonly beside?: PublishedId
}

const step = (
  id: string,
  title: string,
  [over, of]: [string, string],
  beside?: PublishedId,
): Step => ({
  id,
  title,
  of,
  over,
  ...(beside !== undefined && { beside }),
})

/** Steps in the order of the pipeline. Together they lead from passthrough to the full pipeline. */
export const STEPS: readonly Step[] = [
  step('hygiene', 'hygiene, our own proxy', ['passthrough', 'hygiene']),
  step('auth', 'authentication, token cached', ['hygiene', 'auth-cached'], 'spacetime-auth'),
  step('limits', 'revocation, bans, limits', ['auth-cached', 'admit'], 'spacetime-limits'),
  step('rbac', 'roles and permissions', ['admit', 'authorize'], 'spacetime-rbac'),
  step('validation', 'validation', ['authorize', 'validate'], 'spacetime-validation'),
  step('audit', 'audit', ['validate', 'audit'], 'spacetime-audit'),
  step('rest', 'the rest of the gateway', ['audit', 'full']),
]

/** Not part of the sum: real clients do not send a new token each time. */
export const COLD_STEP = step('auth-cold', 'authentication, token new', ['hygiene', 'auth-cold'])

/** The whole gateway compared with the bare proxy. */
export const FULL_STEP = step('full', 'the full pipeline', ['passthrough', 'full'])

export interface MeasuredLayer<Key extends string> {
  readonly id: string
  readonly rounds: readonly { readonly [Name in Key]: number }[]
}

export interface PacedLayer {
  readonly id: string
  readonly title: string
  readonly rounds: readonly PacedSample[]
}

/**
 * Returns the median of the differences between neighbouring rounds. Returns undefined if one of
 * the layers was not measured. The result may be negative if the step costs less than the noise.
 */
export function addedBy<Key extends string>(
  { of, over }: Pick<Step, 'of' | 'over'>,
  layers: readonly MeasuredLayer<Key>[],
  key: Key,
): number | undefined {
  const upper = layers.find(({ id }) => id === of)
  const lower = layers.find(({ id }) => id === over)
  if (upper === undefined || lower === undefined) return undefined
  const differences = upper.rounds.flatMap((round, index) => {
    const beneath = lower.rounds[index]
    return beneath === undefined ? [] : [round[key] - beneath[key]]
  })
  return rounded(median(differences), DIGITS)
}

/** Returns the rounds of the baseline. Throws a `RangeError` if it was not measured. */
function baselineOf<Layer extends { readonly id: string }>(layers: readonly Layer[]): Layer {
  const baseline = layers.find(({ id }) => id === BASELINE)
  if (baseline === undefined) throw new RangeError(`${BASELINE} was not measured`)
  return baseline
}

/** Returns the CPU time of each layer and each step. A development proxy has no targets. */
export function cpuFigures(runtime: Runtime, layers: readonly Summary[]): readonly Figure[] {
  const baseline = baselineOf(layers)
  const each = layers.map(({ id, title, cpuMicros }) =>
    figure(`${id}-cpu`, `${title}: CPU of a request`, cpuMicros, 'us'),
  )
  const aim = { at: 'most', value: MAX_CPU_RATIO } as const
  const ratios = layers
    .filter(({ id }) => id === 'full')
    .map(({ rounds }) => {
      const title = 'full: CPU to that of passthrough'
      const of = [rounds, baseline.rounds, 'cpuMicros'] as const
      return ratioFigure('full-cpu-ratio', title, of, runtime === 'workerd' ? { aim } : {})
    })
  const steps = [...STEPS, COLD_STEP].flatMap((step) => {
    const value = addedBy(step, layers, 'cpuMicros')
    if (value === undefined) return []
    return [figure(`${step.id}-added-cpu`, `${step.title}: adds, CPU`, value, 'us')]
  })
  return [...each, ...ratios, ...steps]
}

/** Returns the figures of one runtime, the medians of its rounds. */
export function layerTable(layers: readonly Summary[]): Table {
  const baseline = baselineOf(layers)
  return {
    title: 'At maximum speed (closed load)',
    headings: [
      ...['layer', 'req/s', 'p50 ms', 'p95 ms', 'p99 ms', 'Redis calls'],
      ...['CPU us', 'user', 'system', 'CPU ratio', 'req/s ratio'],
    ],
    rows: layers.map((layer) => [
      layer.title,
      String(layer.requestsPerSecond),
      layer.p50Ms.toFixed(2),
      layer.p95Ms.toFixed(2),
      layer.p99Ms.toFixed(2),
      layer.redisCalls.toFixed(2),
      layer.cpuMicros.toFixed(0),
      layer.cpuUserMicros.toFixed(0),
      layer.cpuSystemMicros.toFixed(0),
      ratioOf(layer.rounds, baseline.rounds, 'cpuMicros').toFixed(2),
      ratioOf(layer.rounds, baseline.rounds, 'requestsPerSecond').toFixed(2),
    ]),
  }
}

/** Returns the latency that each step adds, and whether the sum is within the budget. */
export function pacedFigures(layers: readonly PacedLayer[]): readonly Figure[] {
  const steps = [...STEPS, COLD_STEP].flatMap((step) => {
    const { id, title, beside } = step
    const p50 = addedBy(step, layers, 'p50Ms')
    const mean = addedBy(step, layers, 'meanMs')
    if (p50 === undefined || mean === undefined) return []
    const published = beside === undefined ? {} : { beside: [beside] }
    return [
      figure(`${id}-added-p50`, `${title}: adds, p50`, p50, 'ms', published),
      figure(`${id}-added-mean`, `${title}: adds, mean`, mean, 'ms'),
    ]
  })
  return [...steps, ...fullFigures(layers)]
}

function fullFigures(layers: readonly PacedLayer[]): readonly Figure[] {
  const p50 = addedBy(FULL_STEP, layers, 'p50Ms')
  const mean = addedBy(FULL_STEP, layers, 'meanMs')
  if (p50 === undefined || mean === undefined) return []
  const share = ratio(p50, medianOf(baselineOf(layers).rounds, 'p50Ms')) * PERCENT
  const title = 'the full pipeline: adds'
  return [
    figure('full-added-p50', `${title}, p50`, p50, 'ms', {
      beside: ['spacetime-full-stack', 'spacetime-target'],
      aim: { at: 'most', value: TARGET_MS },
    }),
    figure('full-added-mean', `${title}, mean`, mean, 'ms', {
      aim: { at: 'most', value: BUDGET_MS },
    }),
    figure('full-added-share', `${title}, of the p50 of passthrough`, rounded(share, 1), '%', {
      beside: ['spacetime-full-stack'],
    }),
  ]
}

/** A refusal by the full pipeline under the closed load, and at a fixed rate. */
export interface Refused extends Summary {
  /** Whether the isolate refuses it without a call to Redis. */
  readonly isLocal: boolean
  readonly paced: PacedSample
}

/** Returns the CPU of each refusal relative to passthrough, and its latency at the fixed rate. */
export function refusalFigures(
  layers: readonly Summary[],
  refused: readonly Refused[],
): readonly Figure[] {
  const { rounds: base } = baselineOf(layers)
  return refused.flatMap(({ id, title, rounds, paced, isLocal }) => {
    const of = [rounds, base, 'cpuMicros'] as const
    const target = isLocal ? { aim: REFUSAL_AIM } : {}
    return [
      ratioFigure(`refused-${id}-cpu`, `refused, ${title}: CPU to passthrough`, of, target),
      figure(`refused-${id}-p50`, `refused, ${title}: p50`, paced.p50Ms, 'ms', {
        beside: ['ramparts-blocked'],
      }),
    ]
  })
}

export function refusalTable(
  layers: readonly Summary[],
  refused: readonly Refused[],
  ratePerSecond: number,
): Table {
  const { rounds: base } = baselineOf(layers)
  return {
    title: `Requests that the full pipeline refuses; latencies at ${ratePerSecond} a second`,
    headings: ['refused', 'CPU us', 'CPU ratio', 'req/s', 'Redis calls', 'p50 ms', 'p99 ms'],
    rows: refused.map(({ title, cpuMicros, requestsPerSecond, redisCalls, rounds, paced }) => [
      title,
      cpuMicros.toFixed(0),
      ratioOf(rounds, base, 'cpuMicros').toFixed(2),
      String(requestsPerSecond),
      redisCalls.toFixed(2),
      paced.p50Ms.toFixed(2),
      paced.p99Ms.toFixed(2),
    ]),
  }
}

/** Returns all layers at `ratePerSecond`. Added time is relative to passthrough, per round. */
export function pacedTable(layers: readonly PacedLayer[], ratePerSecond: number): Table {
  const baseline = baselineOf(layers)
  return {
    title: `At ${ratePerSecond} requests a second, to all layers in turn (open load)`,
    headings: [
      ...['layer', 'mean ms', 'p50 ms', 'p99 ms', 'load late ms'],
      ...['adds, mean', 'adds, p50', 'mean %', 'p50 %'],
    ],
    rows: layers.map(({ id, title, rounds }) => {
      const added = (key: 'meanMs' | 'p50Ms') =>
        addedBy({ of: id, over: BASELINE }, layers, key) ?? 0
      const share = (key: 'meanMs' | 'p50Ms') =>
        (ratio(added(key), medianOf(baseline.rounds, key, DIGITS)) * PERCENT).toFixed(0)
      return [
        title,
        ...(['meanMs', 'p50Ms', 'p99Ms', 'lateP50Ms'] as const).map((key) =>
          medianOf(rounds, key).toFixed(2),
        ),
        added('meanMs').toFixed(DIGITS),
        added('p50Ms').toFixed(DIGITS),
        share('meanMs'),
        share('p50Ms'),
      ]
    }),
  }
}

/** Returns stacked steps. A step that is negative because of noise is drawn as 0. */
export function layerPlots(
  layers: readonly Summary[],
  paced: readonly PacedLayer[],
): readonly Plot[] {
  const [cpu, time] = [baselineOf(layers).rounds, baselineOf(paced).rounds]
  return [
    stacked('layer-cpu', 'CPU of a request, by stage', 'us', [
      {
        category: 'CPU',
        base: medianOf(cpu, 'cpuMicros'),
        added: (step) => addedBy(step, layers, 'cpuMicros'),
      },
    ]),
    stacked(
      'layer-time',
      'Time of a request at a fixed rate, by stage',
      'ms',
      (['meanMs', 'p50Ms'] as const).map((key) => ({
        category: key.replace('Ms', ''),
        base: medianOf(time, key),
        added: (step) => addedBy(step, paced, key),
      })),
    ),
  ]
}

interface Bar {
  readonly category: string
  readonly base: number
  added(step: Step): number | undefined
}

function stacked(id: string, title: string, unit: string, bars: readonly Bar[]): Plot {
  return {
    id,
    title,
    kind: 'stacked',
    x: { title: '' },
    y: { title: unit },
    categories: bars.map(({ category }) => category),
    series: [
      { name: BASELINE, points: bars.map(({ base }) => base) },
      ...STEPS.map((step) => ({
        name: step.title,
        points: bars.map(({ added }) => {
          const value = added(step)
          return value === undefined ? null : Math.max(0, value)
        }),
      })),
    ],
  }
}
