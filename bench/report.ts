/** What the benchmark prints. */
import type { LayerFigures } from './figures.ts'
import type { Runtime } from './options.ts'
import { REFERENCE_FIGURES, REFERENCE_NOTE } from './reference.ts'

/** CPU of the full pipeline, as a multiple of passthrough, that the project aims at. */
export const MAX_CPU_RATIO = 2.6

/** Cores that others may use without it showing. */
const QUIET_CORES = 0.1

const RUNTIME_NAMES: Readonly<Record<Runtime, string>> = {
  workerd: 'workerd serve',
  wrangler: 'wrangler dev',
}

const HEADINGS = [
  'layer',
  'req/s',
  'p50 ms',
  'p95 ms',
  'p99 ms',
  'Redis calls',
  'CPU us',
  'user',
  'system',
  'CPU ratio',
  'req/s ratio',
]

/** The figures of one runtime, medians of its rounds. */
export function layerTable(runtime: Runtime, figures: readonly LayerFigures[]): string {
  const rows = figures.map((layer) => [
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
  ])
  return [
    `${RUNTIME_NAMES[runtime]}`,
    '',
    table(HEADINGS, rows),
    ...noise(figures),
    ...verdict(runtime, figures),
  ].join('\n')
}

/** What others say of the work that a layer does, below what was measured of it here. */
export function referenceTable(runtime: Runtime, figures: readonly LayerFigures[]): string {
  const rows = figures.flatMap(({ id, title, p50Ms, p95Ms, p99Ms, requestsPerSecond }) => {
    const others = REFERENCE_FIGURES.filter(({ layer }) => layer === id)
    if (others.length === 0) return []
    const ours = `${requestsPerSecond} req/s, p50 ${p50Ms} ms, p95 ${p95Ms} ms, p99 ${p99Ms} ms`
    return [
      [title, `Portcullis, ${RUNTIME_NAMES[runtime]}`, ours],
      ...others.map(({ system, says }) => ['', system, says]),
    ]
  })
  return `${REFERENCE_NOTE}\n\n${table(['layer', 'system', 'figures'], rows, 3)}`
}

/** A busy machine inflates everything: shared caches, shared cores, waiting. */
function noise(figures: readonly LayerFigures[]): readonly string[] {
  const cores = Math.max(...figures.map(({ otherCores }) => otherCores))
  if (cores <= QUIET_CORES) return []
  return [
    '',
    `Other processes kept up to ${cores.toFixed(1)} cores busy meanwhile: take only the ratios, and those with care.`,
  ]
}

/** The aim is about our own code, so only the runtime without a development proxy counts. */
function verdict(runtime: Runtime, figures: readonly LayerFigures[]): readonly string[] {
  const full = figures.find(({ id }) => id === 'full')
  if (full === undefined || runtime !== 'workerd') return []
  const { cpu } = full.toBaseline
  const met = cpu <= MAX_CPU_RATIO ? 'met' : 'missed'
  return [
    '',
    `Aim: the full pipeline at no more than ${MAX_CPU_RATIO} times the CPU of passthrough: ${met} (${cpu.toFixed(2)}).`,
  ]
}

/** Columns in line; the first `left` of them begin, the others end, where their heading does. */
export function table(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  left = 1,
): string {
  const lines = [headings, ...rows]
  const widths = headings.map((_, column) =>
    Math.max(...lines.map((line) => (line[column] ?? '').length)),
  )
  const draw = (line: readonly string[]) =>
    widths
      .map((width, column) => {
        const cell = line[column] ?? ''
        return column < left ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
      .trimEnd()
  const rule = widths.map((width) => '-'.repeat(width)).join('  ')
  return [draw(headings), rule, ...rows.map(draw)].join('\n')
}
