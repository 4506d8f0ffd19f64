/** Sections about one scenario each. */
import type { Check, Figure, Measured, Plot } from '../scenario.ts'
import { badge } from './cards.ts'
import { aimText, counted, numberText, valueText } from './format.ts'
import { type Html, html, prose, tableOf } from './html.ts'
import { legendOf, plotSvg } from './plot.ts'
import type { Results } from './results.ts'
import type { Described, PageOptions, Section } from './section.ts'
import { anchorOf, meets } from './standing.ts'

/** Maximum number of rows; more are collapsed. */
const MANY = 14
/** Maximum number of points; more are only in the results file. */
const MAX_POINTS = 60

/** Returns the sections of all measured scenarios, in the order of the run. */
export function scenarioSections(
  { suite }: Results,
  { scenarios }: PageOptions,
): readonly Section[] {
  const measured = suite?.result.measured ?? []
  const alone = (scenario: string) => measured.filter((one) => one.scenario === scenario).length < 2
  return measured.map((one) => ({
    id: anchorOf(one),
    title: alone(one.scenario) ? one.title : `${one.title} (${one.runtime})`,
    body: bodyOf(one, scenarios.get(one.scenario)),
  }))
}

function bodyOf(measured: Measured, described: Described | undefined): Html {
  const { scenario, runtime, tookSeconds, figures, checks, plots = [], tables = [] } = measured
  const anchor = anchorOf(measured)
  return html`${described && html`<p>${prose(described.measures)}</p>`}
<p class="soft">${
    described === undefined
      ? 'This scenario no longer exists; these are its last results.'
      : html`<code>npm run bench -- --only ${scenario} --runtime ${runtime}</code>`
  } Duration: ${numberText(tookSeconds)} s.</p>
${notesOf(measured.notes)}
${plots.map((plot) => figureOf(plot, anchor))}
${folded(figures.length, 'figure', figuresTable(figures))}
${tables.map(({ title, headings, rows }) => tableOf(title, headings, rows))}
${checksOf(checks, described)}`
}

/** Returns the notes before the figures. */
function notesOf(notes: readonly string[] = []): Html | undefined {
  if (notes.length === 0) return undefined
  return html`<div class="note"><ul>${notes.map((note) => html`<li>${prose(note)}</li>`)}</ul></div>`
}

function folded(count: number, what: string, body: Html): Html | undefined {
  if (count === 0) return undefined
  if (count <= MANY) return body
  return html`<details><summary>All ${counted(count, what)}</summary>${body}</details>`
}

function figuresTable(figures: readonly Figure[]): Html {
  const withAims = figures.some(({ aim }) => aim !== undefined)
  return tableOf(
    'Figures',
    ['what', 'measured', ...(withAims ? ['aim', ''] : [])],
    figures.map((figure) => [
      figure.title,
      valueText(figure),
      ...(withAims ? [aimText(figure), verdictOf(figure)] : []),
    ]),
  )
}

const verdictOf = ({ value, aim }: Figure) => (aim === undefined ? '' : badge(meets(value, aim)))

function checksOf(checks: readonly Check[], described: Described | undefined): Html {
  const table = tableOf(
    'Each of these held: otherwise there would be no figures',
    ['what', 'seen'],
    checks.map(({ what, seen }) => [what, seen]),
  )
  const rules = described?.asserts.map((rule) => html`<li>${prose(rule)}</li>`)
  return html`<h3>What was looked at meanwhile</h3>
${checks.length > 0 ? table : html`<p>Nothing that these results tell.</p>`}
${rules && html`<details><summary>What makes it fail</summary><ul>${rules}</ul></details>`}`
}

function figureOf(plot: Plot, anchor: string): Html {
  const rows = dataOf(plot)
  const headings = [
    plot.kind === 'line' ? plot.x.title : '',
    ...plot.series.map(({ name }) => name),
  ]
  return html`<figure><figcaption>${plot.title}</figcaption>
${plot.series.length > 1 ? legendOf(plot) : undefined}
<div class="wide" role="region" aria-label="Plot: ${plot.title}" tabindex="0">${plotSvg(
    plot,
    anchor,
  )}</div>
${
  rows.length > MAX_POINTS
    ? undefined
    : html`<details><summary>As a table</summary>${tableOf(
        `${plot.title}: ${plot.y.title}`,
        headings,
        rows,
      )}</details>`
}</figure>`
}

/** Returns the plot's numbers: a row for each category, or for each x of any line. */
export function dataOf({ kind, categories = [], series }: Plot): readonly (readonly string[])[] {
  const textOf = (value: unknown) => (typeof value === 'number' ? numberText(value) : '-')
  if (kind !== 'line') {
    return categories.map((category, index) => [
      category,
      ...series.map(({ points }) => textOf(points[index])),
    ])
  }
  const lines = series.map(
    ({ points }) => new Map(points.filter((point) => Array.isArray(point)) as [number, number][]),
  )
  const places = [...new Set(lines.flatMap((line) => [...line.keys()]))].sort((a, b) => a - b)
  return places.map((x) => [numberText(x), ...lines.map((line) => textOf(line.get(x)))])
}
