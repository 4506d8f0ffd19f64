/** Everything that is made of results, and where it goes. */
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { ROOT } from '../../dev/start/settings.ts'
import { SCENARIOS } from '../scenarios/index.ts'
import { markdownOf } from './markdown.ts'
import type { ReportOptions } from './options.ts'
import { pageOf } from './page.ts'
import { figuresText, withFigures } from './readme.ts'
import { readResults } from './results.ts'

/** A file to write. */
export interface Output {
  /** Its whole path. */
  readonly path: string
  readonly text: string
}

const RESULTS = join(ROOT, 'bench', 'results')

/** The same for the same results. Throws an `Error` of one line for results that are none. */
export function outputsOf({ from, out }: Pick<ReportOptions, 'from' | 'out'>): readonly Output[] {
  const results = readResults(from === undefined ? RESULTS : resolve(from))
  const scenarios = new Map(SCENARIOS.map((scenario) => [scenario.id, scenario]))
  const page = placeOf(out, join(RESULTS, 'report.html'), 'report.html')
  const summary = placeOf(out, join(ROOT, 'docs', 'benchmarks.md'), 'benchmarks.md')
  const figures = placeOf(out, join(ROOT, 'README.md'), 'figures.md')
  const figuresNow = figuresText(results, linksFrom(figures))
  return [
    { path: page, text: pageOf(results, { scenarios, linkTo: linksFrom(page) }) },
    { path: summary, text: markdownOf(results, { scenarios, page, linkTo: linksFrom(summary) }) },
    {
      path: figures,
      text:
        out === undefined
          ? withFigures(readFileSync(figures, 'utf8'), figuresNow)
          : `${figuresNow}\n`,
    },
  ]
}

const placeOf = (out: string | undefined, usual: string, name: string) =>
  out === undefined ? usual : join(resolve(out), name)

/** Addresses of files, from another one; a path that is not whole is one of the repository. */
const linksFrom = (file: string) => (path: string) => relative(dirname(file), resolve(ROOT, path))
