/** From the figures of layers to what a scenario says. */
import type { LayerFigures } from './figures.ts'
import type { Runtime } from './options.ts'
import type { Figure, ScenarioResult, Table } from './scenario.ts'

/** CPU of the full pipeline, as a multiple of passthrough, that the project aims at. */
export const MAX_CPU_RATIO = 2.4

/** Cores that others may use without it showing. */
const QUIET_CORES = 0.1

/** Figures and checks. The aim is about our own code: that of a development proxy does not count. */
export function layerFigures(
  runtime: Runtime,
  layers: readonly LayerFigures[],
): Pick<ScenarioResult, 'figures' | 'checks' | 'notes'> {
  const answers = layers.reduce(
    (sum, { rounds }) => sum + rounds.reduce((all, { requests }) => all + requests, 0),
    0,
  )
  return {
    figures: layers.flatMap((layer) => [
      cpuFigure(layer),
      ...(layer.id === 'full' ? [ratioFigure(runtime, layer)] : []),
    ]),
    checks: [{ what: 'answers that were wrong', seen: `0 of ${answers.toLocaleString('en')}` }],
    notes: noise(layers),
  }
}

function cpuFigure({ id, title, cpuMicros }: LayerFigures): Figure {
  return { id: `${id}-cpu`, title: `CPU of a request, ${title}`, value: cpuMicros, unit: 'us' }
}

function ratioFigure(runtime: Runtime, { toBaseline }: LayerFigures): Figure {
  return {
    id: 'full-cpu-ratio',
    title: 'CPU of the full pipeline to passthrough',
    value: toBaseline.cpu,
    unit: 'ratio',
    ...(runtime === 'workerd' && { aim: { at: 'most', value: MAX_CPU_RATIO } }),
  }
}

/** The figures of one runtime, medians of its rounds. */
export function layerTable(layers: readonly LayerFigures[]): Table {
  return {
    title: 'As fast as it goes (closed load); medians of the rounds',
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

/** A busy machine inflates everything: shared caches, shared cores, waiting. */
function noise(layers: readonly LayerFigures[]): readonly string[] {
  const cores = Math.max(...layers.map(({ otherCores }) => otherCores))
  if (cores <= QUIET_CORES) return []
  return [
    `Other processes kept up to ${cores.toFixed(1)} cores busy meanwhile: take only the ratios, and those with care.`,
  ]
}
