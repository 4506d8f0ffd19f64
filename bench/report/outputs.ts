/** Generates all outputs of results, with their paths. */
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { ROOT } from '../../dev/start/settings.ts'
import { SCENARIOS } from '../scenarios/index.ts'
import { chartsOf } from './charts.ts'
import { HEADLINES, headlineTable } from './headlines.ts'
import type { ReportOptions } from './options.ts'
import { reportOf } from './report.ts'
import { readResults } from './results.ts'

export interface Output {
  /** Absolute path. */
  readonly path: string
  readonly text: string
}

const RESULTS = join(ROOT, 'bench', 'results')
const PICTURES = join(ROOT, 'docs', 'images', 'benchmarks')
/** Documents with figures between two markers, and how many. The README has a limit of size. */
const WITH_FIGURES = [
  ['README.md', 4],
  ['docs/benchmarks.md', HEADLINES.length + 2],
] as const

/** Returns the outputs. Throws an `Error` of one line for invalid results. */
export function outputsOf({ from, out }: Pick<ReportOptions, 'from' | 'out'>): readonly Output[] {
  const results = readResults(from === undefined ? RESULTS : resolve(from))
  const scenarios = new Map(SCENARIOS.map((scenario) => [scenario.id, scenario]))
  const report =
    out === undefined
      ? join(ROOT, 'docs', 'reports', 'benchmarks.md')
      : join(resolve(out), 'report.md')
  const pictures = out === undefined ? PICTURES : resolve(out)
  const charts = chartsOf(results).map(({ name, alt, svg }) => ({
    path: join(pictures, `${name}.svg`),
    alt,
    text: svg,
  }))
  const full = { path: report, text: reportOf(results, scenarios, linksFrom(report), charts) }
  if (out !== undefined) {
    const path = join(resolve(out), 'figures.md')
    return [
      full,
      ...charts,
      { path, text: `${headlineTable(results, HEADLINES.length + 2, linksFrom(path))}\n` },
    ]
  }
  return [
    full,
    ...charts,
    ...WITH_FIGURES.map(([name, shown]): Output => {
      const path = join(ROOT, name)
      const figures = headlineTable(results, shown, linksFrom(path))
      return { path, text: withFigures(readFileSync(path, 'utf8'), figures) }
    }),
  ]
}

/** Returns a function that returns URLs relative to `file`. */
const linksFrom = (file: string) => (path: string) => relative(dirname(file), resolve(ROOT, path))

/** Begins the text that is generated from results. The text around it stays unchanged. */
const BEGIN = '<!-- figures:begin -->'
/** Ends the generated text. */
const END = '<!-- figures:end -->'

/** Returns `document` with other figures. Throws an `Error` if it has no markers. */
export function withFigures(document: string, figures: string): string {
  const begin = document.indexOf(BEGIN)
  const end = document.indexOf(END)
  if (begin < 0 || end < begin) throw new Error(`missing markers ${BEGIN} and ${END}`)
  return `${document.slice(0, begin + BEGIN.length)}\n${figures}\n${document.slice(end)}`
}
