/** Sections about one scenario each. */
import type { Figure, Measured } from '../scenario.ts'
import { type Block, badgeOf, type Scenarios, type Section } from './content.ts'
import { aimMet, aimText, counted, numberText, valueText } from './format.ts'
import type { Results } from './results.ts'
import { anchorOf } from './standing.ts'

/** Maximum number of rows; more are collapsed. */
const MANY = 14

/** Returns the sections of all measured scenarios, in the order of the run. */
export const scenarioSections = ({ suite }: Results, scenarios: Scenarios): readonly Section[] =>
  (suite?.result.measured ?? []).map((measured) => ({
    id: anchorOf(measured),
    title: `${scenarios.get(measured.scenario)?.title ?? measured.title} (${measured.runtime})`,
    blocks: blocksOf(measured, scenarios),
  }))

function blocksOf(measured: Measured, scenarios: Scenarios): readonly Block[] {
  const { scenario, runtime, tookSeconds, figures, checks, plots = [], tables = [] } = measured
  const { notes = [] } = measured
  const described = scenarios.get(scenario)
  const command = `\`npm run bench -- --only ${scenario} --runtime ${runtime}\``
  const anchor = anchorOf(measured)
  return [
    {
      kind: 'text',
      text: described?.measures ?? 'This scenario no longer exists; these are its last results.',
    },
    {
      kind: 'text',
      text: `${described === undefined ? '' : `${command} `}Duration: ${numberText(tookSeconds)} s.`,
      onlyOnPage: true,
    },
    ...listOf(notes, 'note'),
    ...plots.map((plot): Block => ({ kind: 'plot', plot, anchor })),
    ...figuresTable(figures, tables.length > 0),
    ...tables.map((table): Block => ({ kind: 'table', ...table })),
    {
      kind: 'text',
      text: `Checked during the measurement: ${checks.map(({ what, seen }) => `${what}: ${seen}`).join('; ') || 'nothing'}.`,
    },
    ...(described === undefined ? [] : conditionsOf(described.asserts)),
  ]
}

const listOf = (items: readonly string[], tone: 'note'): readonly Block[] =>
  items.length === 0 ? [] : [{ kind: 'list', items, tone }]

function figuresTable(figures: readonly Figure[], onlyOnPage: boolean): readonly Block[] {
  if (figures.length === 0) return []
  const folded = figures.length > MANY ? `All ${counted(figures.length, 'figure')}` : undefined
  return [
    {
      kind: 'table',
      title: 'Figures',
      headings: ['what', 'measured', 'aim', ''],
      rows: figures.map((figure) => [
        figure.title,
        valueText(figure),
        aimText(figure),
        figure.aim === undefined ? '' : badgeOf(aimMet(figure)),
      ]),
      ...(folded !== undefined && { folded }),
      onlyOnPage,
    },
  ]
}

const conditionsOf = (asserts: readonly string[]): readonly Block[] => [
  {
    kind: 'table',
    title: 'Conditions',
    headings: ['condition'],
    rows: asserts.map((rule) => [rule]),
    folded: 'Conditions that fail the run',
    onlyOnPage: true,
  },
]
