/** The figures of `docs/benchmarks.md`, of which the first are in the README as well. */
import { aimMet, aimText, numberText, valueText } from './format.ts'
import { markdownTable } from './markdown.ts'
import type { Results } from './results.ts'

/** Scenario, figure and text of each headline, the most important first. */
export const HEADLINES = [
  ['node', 'durable-to-bare', 'Node, durable audit: CPU of a request to that of a bare proxy'],
  ['node', 'log-to-bare', 'Node, log lines: CPU of a request to that of a bare proxy'],
  [
    'node',
    'durable-to-by-hand-durable',
    'Node, durable audit: CPU to that of a strong stack by hand with a durable audit',
  ],
  ['leases', 'strict-cpu', 'Workers: CPU of a request to that of a bare proxy'],
  ['node', 'log-to-by-hand-log', 'Node, log lines: CPU to that of a strong stack by hand'],
  ['node', 'durable-added', 'Node: CPU of a durable audit event over a log line'],
  ['node', 'written', 'Node: bytes written to the disk for an event'],
  ['node', 'stored', 'Node: bytes stored on the disk for an event'],
  ['node', 'postgres-cpu-of-event', 'Node: CPU of PostgreSQL for an event'],
  ['node', 'redis-cpu-to-by-hand', 'CPU of Redis for an admission to that of a script by hand'],
  ['leases', 'leased-to-platform', 'Workers, leased: CPU to that of a proxy with the same calls'],
] as const satisfies readonly (readonly [scenario: string, figure: string, what: string])[]

export interface Headline {
  readonly what: string
  readonly value: string
  /** Such as `at most 2.4: met`; empty without an aim. */
  readonly aim: string
  /** Absolute path of the results file. */
  readonly path: string
}

/** Returns those that the results have. */
export function headlinesOf({ runs, soaks }: Results): readonly Headline[] {
  const measured = HEADLINES.flatMap(([scenario, id, what]): Headline[] => {
    const run = runs.find(({ measured }) => measured.scenario === scenario)
    const figure = run?.measured.figures.find((one) => one.id === id)
    if (run === undefined || figure === undefined) return []
    const isMet = aimMet(figure)
    const aim = isMet === undefined ? '' : `${aimText(figure)}: ${isMet ? 'met' : 'missed'}`
    return [{ what, value: valueText(figure), aim, path: run.saved.path }]
  })
  const soaked = soaks.map(({ path, result }): Headline => {
    const { invariants, load, options } = result
    const held = invariants.filter(({ holds }) => holds === true).length
    const broken = invariants.filter(({ holds }) => holds === false).map(({ what }) => what)
    return {
      what:
        `Invariants that held for ${numberText(options.minutes)} minutes of load with faults, ` +
        `${numberText(load.requests)} requests`,
      value: `${held} of ${invariants.length}`,
      aim: broken.length === 0 ? '' : `broken: ${broken.join('; ')}`,
      path,
    }
  })
  return [...measured, ...soaked]
}

/** Returns the first headlines as a table, each with the file of its result. */
export function headlineTable(
  results: Results,
  shown: number,
  linkTo: (path: string) => string,
): string {
  const headlines = headlinesOf(results).slice(0, shown)
  if (headlines.length === 0) return 'The results contain none of these figures.'
  return markdownTable(
    ['', 'measured', 'aim', ''],
    headlines.map(({ what, value, aim, path }) => [
      what,
      `**${value}**`,
      aim,
      `[results](${linkTo(path)})`,
    ]),
  )
}
