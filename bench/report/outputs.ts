/** Generates all outputs of results, with their paths. */
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { ROOT } from '../../dev/start/settings.ts'
import { SCENARIOS } from '../scenarios/index.ts'
import type { Section } from './content.ts'
import { type Headline, headlinesOf } from './headlines.ts'
import { markdownOf, markdownTable } from './markdown.ts'
import type { ReportOptions } from './options.ts'
import { aims, beside, environment, failures } from './overview.ts'
import { pageOf } from './page.ts'
import { type Results, readResults } from './results.ts'
import { comparisons, profile, soak } from './runs.ts'
import { scenarioSections } from './scenarios.ts'
import { summary } from './summary.ts'

export interface Output {
  /** Absolute path. */
  readonly path: string
  readonly text: string
}

const RESULTS = join(ROOT, 'bench', 'results')

/** Returns the outputs. Throws an `Error` of one line for invalid results. */
export function outputsOf({ from, out }: Pick<ReportOptions, 'from' | 'out'>): readonly Output[] {
  const results = readResults(from === undefined ? RESULTS : resolve(from))
  const sections = sectionsOf(results)
  const page = placeOf(out, join(RESULTS, 'report.html'), 'report.html')
  const document = placeOf(out, join(ROOT, 'docs', 'benchmarks.md'), 'benchmarks.md')
  const figures = placeOf(out, join(ROOT, 'README.md'), 'figures.md')
  const figuresNow = figuresText(results, linksFrom(figures))
  return [
    { path: page, text: pageOf(sections, linksFrom(page)) },
    { path: document, text: markdownOf(sections, page, linksFrom(document)) },
    {
      path: figures,
      text:
        out === undefined
          ? withFigures(readFileSync(figures, 'utf8'), figuresNow)
          : `${figuresNow}\n`,
    },
  ]
}

/** Returns the sections of the report, with the summary first and the aims last. */
function sectionsOf(results: Results): readonly Section[] {
  const scenarios = new Map(SCENARIOS.map((scenario) => [scenario.id, scenario]))
  return [
    summary(results),
    failures(results, scenarios),
    ...scenarioSections(results, scenarios),
    soak(results),
    profile(results),
    comparisons(results),
    beside(results),
    environment(results),
    aims(results),
  ].filter((section) => section !== undefined)
}

const placeOf = (out: string | undefined, usual: string, name: string) =>
  out === undefined ? usual : join(resolve(out), name)

/** Returns a function that returns URLs relative to `file`. */
const linksFrom = (file: string) => (path: string) => relative(dirname(file), resolve(ROOT, path))

/** Begins the text that is generated from results. The text around it stays unchanged. */
const BEGIN = '<!-- figures:begin -->'
/** Ends the generated text. */
const END = '<!-- figures:end -->'

/** The README has a limit of size, and refers to docs/benchmarks.md for the other figures. */
const SHOWN = 3

/** Returns a table of the first headlines, each with the command and the file of its result. */
function figuresText(results: Results, linkTo: (path: string) => string): string {
  const headlines = headlinesOf(results).slice(0, SHOWN)
  if (headlines.length === 0) return 'The results contain none of these figures.'
  return markdownTable(
    ['', 'measured', 'aim', 'by'],
    headlines.map(({ what, value, aim, path, command }: Headline) => [
      what,
      `**${value}**`,
      aim,
      `\`${command}\` ([results](${linkTo(path)}))`,
    ]),
  )
}

/** Returns `document` with other figures. Throws an `Error` if it has no markers. */
export function withFigures(document: string, figures: string): string {
  const begin = document.indexOf(BEGIN)
  const end = document.indexOf(END)
  if (begin < 0 || end < begin) throw new Error(`missing markers ${BEGIN} and ${END}`)
  return `${document.slice(0, begin + BEGIN.length)}\n${figures}\n${document.slice(end)}`
}
