/** Formats the output of the benchmark. */
import { aimMet, aimText, valueText } from './report/format.ts'
import type { Figure, Measured, Scenario } from './scenario.ts'

/** Returns the list of scenarios, for `--list`. */
export function listOf(scenarios: Iterable<Scenario>): string {
  return [...scenarios]
    .map(({ id, title, measures, runtimes, seconds }) =>
      [
        `${id}: ${title}`,
        `  ${measures}`,
        `  runtimes: ${runtimes.join(', ')}; duration: ${seconds.full} s, ${quickText(seconds.quick)}`,
      ].join('\n'),
    )
    .join('\n\n')
}

const quickText = (seconds: number): string =>
  seconds === 0 ? 'not in a quick run of all scenarios' : `${seconds} s in a quick run`

/** Returns the results of a scenario: tables, figures and checks. */
export function measuredText(measured: Measured): string {
  const { title, runtime, tookSeconds, figures, checks, tables = [], notes = [] } = measured
  const heading = `${title} (${runtime}, ${tookSeconds} s)`
  const rows = figures.map((figure) => [figure.title, valueText(figure), verdictOf(figure)])
  return [
    '',
    heading,
    '='.repeat(heading.length),
    ...tables.flatMap((each) => ['', each.title, '', table(each.headings, each.rows)]),
    '',
    table(['figure', 'value', 'aim'], rows),
    '',
    ...checks.map(({ what, seen }) => `Checked: ${what}: ${seen}.`),
    ...notes,
    '',
  ].join('\n')
}

function verdictOf(figure: Figure): string {
  const isMet = aimMet(figure)
  if (isMet === undefined) return ''
  return `${aimText(figure)}: ${isMet ? 'met' : 'missed'}`
}

/** Formats aligned columns. The first `left` columns are left-aligned, the others right-aligned. */
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
