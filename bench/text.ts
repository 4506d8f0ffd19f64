/** Formats the output of the benchmark. */
import { PUBLISHED, PUBLISHED_NOTE, type PublishedId, SYSTEMS } from './published.ts'
import type { Figure, Measured, Scenario } from './scenario.ts'

const DIGITS_OF_SMALL = 3
const SMALL = 10
const MIDDLE = 100

/** Returns the list of scenarios, for `--list`. */
export function listOf(scenarios: Iterable<Scenario>): string {
  return [...scenarios]
    .map(({ id, title, measures, runtimes, seconds, answers }) =>
      [
        `${id}: ${title}`,
        `  ${measures}`,
        `  runs under ${runtimes.join(' and ')}; ${quickly(seconds.quick)}, ${seconds.full} s in full`,
        `  compared with ${answers.length === 0 ? 'no published figure' : answers.join(', ')}`,
      ].join('\n'),
    )
    .join('\n\n')
}

const quickly = (seconds: number): string =>
  seconds === 0 ? 'not in a quick run of all' : `about ${seconds} s quickly`

/** Returns the results of a scenario: tables, figures, checks, and published figures. */
export function measuredText(measured: Measured): string {
  const { title, runtime, tookSeconds, figures, checks, tables = [], notes = [] } = measured
  const heading = `${title} (${runtime}, ${tookSeconds} s)`
  const rows = figures.map((figure) => [figure.title, valueText(figure), aimText(figure)])
  return [
    '',
    heading,
    '='.repeat(heading.length),
    ...tables.flatMap((each) => ['', each.title, '', table(each.headings, each.rows)]),
    '',
    table(['figure', 'value', 'aim'], rows),
    ...besideText(figures),
    '',
    ...checks.map(({ what, seen }) => `Checked: ${what}: ${seen}.`),
    ...notes,
    '',
  ].join('\n')
}

/** Formats `value` with its unit and its significant digits. */
export function valueText({ value, unit }: Pick<Figure, 'value' | 'unit'>): string {
  const digits = Number.isInteger(value) || Math.abs(value) >= MIDDLE ? 0 : 1
  const text =
    Math.abs(value) < SMALL && !Number.isInteger(value)
      ? value.toFixed(DIGITS_OF_SMALL)
      : value.toLocaleString('en', { maximumFractionDigits: digits })
  return unit === 'ratio' || unit === 'count' ? text : `${text} ${unit}`
}

/** Reports whether the target of a figure is met; undefined without a target. */
export function isMet({ value, aim }: Pick<Figure, 'value' | 'aim'>): boolean | undefined {
  if (aim === undefined) return undefined
  return aim.at === 'most' ? value <= aim.value : value >= aim.value
}

function aimText(figure: Figure): string {
  const { aim, unit } = figure
  if (aim === undefined) return ''
  return `at ${aim.at} ${valueText({ value: aim.value, unit })}: ${isMet(figure) ? 'met' : 'missed'}`
}

/** Returns published figures of similar work, below the measured ones. */
function besideText(figures: readonly Figure[]): readonly string[] {
  const rows = figures.flatMap((figure) =>
    (figure.beside ?? []).map((id: PublishedId, index) => {
      const { system, of, says } = PUBLISHED[id]
      const ours = index === 0 ? [figure.title, valueText(figure)] : ['', '']
      return [...ours, `${SYSTEMS[system]}: ${of}`, says]
    }),
  )
  if (rows.length === 0) return []
  const headings = ['figure', 'here', 'other system', 'published']
  return ['', PUBLISHED_NOTE, '', table(headings, rows, headings.length)]
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
