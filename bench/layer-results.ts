/** Computes the results of a scenario from the figures of layers. */
import type { LayerFigures } from './figures.ts'
import { addedBy, COLD_STEP, type Measured, STEPS } from './layer-steps.ts'
import { BASELINE } from './layers.ts'
import type { Runtime } from './options.ts'
import { middle, type PacedLayer } from './paced-figures.ts'
import type { Figure, Plot, Table } from './scenario.ts'

/** Target for the CPU time of the full pipeline, as a multiple of passthrough. */
export const MAX_CPU_RATIO = 2.4

/** Cores that other processes may use without an effect on the results. */
const QUIET_CORES = 0.1

/** Returns the CPU time of each layer and each step. A development proxy has no targets. */
export function cpuFigures(runtime: Runtime, layers: readonly LayerFigures[]): readonly Figure[] {
  const steps = [...STEPS, COLD_STEP].flatMap((step): Figure[] => {
    const value = addedBy(step, layers, 'cpuMicros')
    if (value === undefined) return []
    return [{ id: `${step.id}-added-cpu`, title: `${step.title}: adds, CPU`, value, unit: 'us' }]
  })
  return [
    ...layers.map(
      ({ id, title, cpuMicros: value }): Figure => ({
        ...{ id: `${id}-cpu`, title: `${title}: CPU of a request`, value, unit: 'us' },
      }),
    ),
    ...layers.filter(({ id }) => id === 'full').map((full) => ratioFigure(runtime, full)),
    ...steps,
  ]
}

function ratioFigure(runtime: Runtime, { toBaseline }: LayerFigures): Figure {
  return {
    id: 'full-cpu-ratio',
    title: 'full: CPU to that of passthrough',
    value: toBaseline.cpu,
    unit: 'ratio',
    ...(runtime === 'workerd' && { aim: { at: 'most', value: MAX_CPU_RATIO } }),
  }
}

/** Returns the figures of one runtime, the medians of its rounds. */
export function layerTable(layers: readonly LayerFigures[]): Table {
  return {
    title: 'As fast as it goes (closed load)',
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
      layer.toBaseline.cpu.toFixed(2),
      layer.toBaseline.requestsPerSecond.toFixed(2),
    ]),
  }
}

/** Returns stacked steps. A step that is negative because of noise is drawn as 0. */
export function layerPlots(
  layers: readonly LayerFigures[],
  paced: readonly PacedLayer[],
): readonly Plot[] {
  const [closedBase, pacedBase] = [layers, paced].map((all) =>
    all.find(({ id }) => id === BASELINE),
  ) as [LayerFigures | undefined, PacedLayer | undefined]
  if (closedBase === undefined || pacedBase === undefined) return []
  return [
    stacked('layer-cpu', 'CPU of a request, by stage', 'us', [
      { category: 'CPU', base: closedBase.cpuMicros, addedOf: added(layers, 'cpuMicros') },
    ]),
    stacked('layer-time', 'Time of a request at a fixed rate, by stage', 'ms', [
      { category: 'mean', base: middle(pacedBase, 'meanMs'), addedOf: added(paced, 'meanMs') },
      { category: 'p50', base: middle(pacedBase, 'p50Ms'), addedOf: added(paced, 'p50Ms') },
    ]),
  ]
}

interface Bar {
  readonly category: string
  readonly base: number
  addedOf(step: (typeof STEPS)[number]): number | undefined
}

function added<Key extends string>(layers: readonly Measured<Key>[], key: Key): Bar['addedOf'] {
  return (step) => addedBy(step, layers, key)
}

function stacked(id: string, title: string, unit: string, bars: readonly Bar[]): Plot {
  return {
    ...{ id, title, kind: 'stacked', x: { title: '' }, y: { title: unit } },
    categories: bars.map(({ category }) => category),
    series: [
      { name: BASELINE, points: bars.map(({ base }) => base) },
      ...STEPS.map((step) => ({
        name: step.title,
        points: bars.map(({ addedOf }) => {
          const value = addedOf(step)
          return value === undefined ? null : Math.max(0, value)
        }),
      })),
    ],
  }
}

/** Returns notes about noise. A busy machine increases all figures: it shares caches and cores. */
export function noise(layers: readonly LayerFigures[]): readonly string[] {
  const cores = Math.max(...layers.map(({ otherCores }) => otherCores))
  if (cores <= QUIET_CORES) return []
  return [
    `Other processes kept up to ${cores.toFixed(1)} cores busy meanwhile: take only the ratios, and those with care.`,
  ]
}
