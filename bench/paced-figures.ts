/** Computes what layers add to the latency. */
import { addedBy, COLD_STEP, FULL_STEP, STEPS, type Step } from './layer-steps.ts'
import { BASELINE, type Layer } from './layers.ts'
import type { PacedRound } from './paced-rounds.ts'
import type { Figure, Table } from './scenario.ts'
import { median, ratio, rounded } from './statistics.ts'

/** Maximum time that the full pipeline may add to a request. */
const BUDGET_MS = 5
/** Target for the added time. */
const TARGET_MS = 1.25
const DIGITS = 3
const PERCENT = 100

/** A layer at a fixed rate. */
export interface PacedLayer {
  readonly id: string
  readonly title: string
  readonly rounds: readonly PacedRound[]
}

/** Returns the layers in the order of measurement. */
export function pacedLayers(measured: ReadonlyMap<Layer, readonly PacedRound[]>): PacedLayer[] {
  return [...measured].map(([{ id, title }, rounds]) => ({ id, title, rounds }))
}

/** Returns what each step adds, and whether the sum is within the budget. */
export function pacedFigures(layers: readonly PacedLayer[]): readonly Figure[] {
  return [...STEPS, COLD_STEP]
    .flatMap((step) => stepFigures(step, layers))
    .concat(fullFigures(layers))
}

function stepFigures(step: Step, layers: readonly PacedLayer[]): readonly Figure[] {
  const { id, title, beside } = step
  const p50 = addedBy(step, layers, 'p50Ms')
  const mean = addedBy(step, layers, 'meanMs')
  if (p50 === undefined || mean === undefined) return []
  return [
    {
      ...{ id: `${id}-added-p50`, title: `${title}: adds, p50`, value: p50, unit: 'ms' },
      ...(beside !== undefined && { beside: [beside] }),
    },
    { id: `${id}-added-mean`, title: `${title}: adds, mean`, value: mean, unit: 'ms' },
  ]
}

function fullFigures(layers: readonly PacedLayer[]): readonly Figure[] {
  const p50 = addedBy(FULL_STEP, layers, 'p50Ms')
  const mean = addedBy(FULL_STEP, layers, 'meanMs')
  const baseline = layers.find(({ id }) => id === BASELINE)
  if (p50 === undefined || mean === undefined || baseline === undefined) return []
  return [
    {
      ...{ id: 'full-added-p50', title: 'the full pipeline: adds, p50', value: p50, unit: 'ms' },
      beside: ['spacetime-full-stack', 'spacetime-target'],
      aim: { at: 'most', value: TARGET_MS },
    },
    {
      ...{ id: 'full-added-mean', title: 'the full pipeline: adds, mean', value: mean, unit: 'ms' },
      aim: { at: 'most', value: BUDGET_MS },
    },
    {
      ...{ id: 'full-added-share', title: 'the full pipeline: adds, of the p50 of passthrough' },
      value: rounded(ratio(p50, middle(baseline, 'p50Ms')) * PERCENT, 1),
      unit: '%',
      beside: ['spacetime-full-stack'],
    },
  ]
}

/**
 * Returns a table of all layers at `ratePerSecond`. Added time is relative to passthrough, per
 * round.
 */
export function pacedTable(layers: readonly PacedLayer[], ratePerSecond: number): Table {
  return {
    title: `At ${ratePerSecond} requests a second, to all layers in turn (open load)`,
    headings: [
      ...['layer', 'mean ms', 'p50 ms', 'p99 ms', 'load late ms'],
      ...['adds, mean', 'adds, p50', 'mean %', 'p50 %'],
    ],
    rows: layers.map((layer) => {
      const step = { id: layer.id, title: layer.title, of: layer.id, over: BASELINE }
      const mean = addedBy(step, layers, 'meanMs') ?? 0
      const p50 = addedBy(step, layers, 'p50Ms') ?? 0
      return [
        layer.title,
        ...(['meanMs', 'p50Ms', 'p99Ms', 'lateP50Ms'] as const).map((key) =>
          middle(layer, key).toFixed(2),
        ),
        mean.toFixed(DIGITS),
        p50.toFixed(DIGITS),
        share(mean, layers, 'meanMs'),
        share(p50, layers, 'p50Ms'),
      ]
    }),
  }
}

/** Returns the median of a layer's rounds. */
export function middle(layer: PacedLayer, key: Exclude<keyof PacedRound, 'requests'>): number {
  return median(layer.rounds.map((round) => round[key]))
}

function share(added: number, layers: readonly PacedLayer[], key: 'meanMs' | 'p50Ms'): string {
  const baseline = layers.find(({ id }) => id === BASELINE)
  if (baseline === undefined) return ''
  return `${(ratio(added, middle(baseline, key)) * PERCENT).toFixed(0)}`
}
