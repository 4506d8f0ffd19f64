/** Sections about one scenario each. */
import type { Check, Figure, Measured } from '../scenario.ts'
import { aimMet, aimText, counted, numberText, valueText } from './format.ts'
import { type Html, html, prose, tableOf } from './html.ts'
import type { Results } from './results.ts'
import type { Described, PageOptions, Section } from './section.ts'
import { anchorOf } from './standing.ts'
import { badge, figureOf } from './summary.ts'

/** Maximum number of rows; more are collapsed. */
const MANY = 14

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

const verdictOf = (figure: Figure) => (figure.aim === undefined ? '' : badge(aimMet(figure)))

function checksOf(checks: readonly Check[], described: Described | undefined): Html {
  const table = tableOf(
    'Conditions that held; otherwise there would be no figures',
    ['condition', 'seen'],
    checks.map(({ what, seen }) => [what, seen]),
  )
  const rules = described?.asserts.map((rule) => html`<li>${prose(rule)}</li>`)
  return html`<h3>Checks during the measurement</h3>
${checks.length > 0 ? table : html`<p>These results contain no checks.</p>`}
${rules && html`<details><summary>Conditions that fail the run</summary><ul>${rules}</ul></details>`}`
}
