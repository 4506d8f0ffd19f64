/** Generates the report as Markdown for `docs/benchmarks.md`: the same figures without plots. */
import { PUBLISHED_NOTE } from '../published.ts'
import type { Figure } from '../scenario.ts'
import { counted, dayOf, valueText } from './format.ts'
import type { Results, Saved } from './results.ts'
import { intervalText } from './runs.ts'
import type { Result } from './schema.ts'
import type { Described } from './section.ts'
import { besides, type Ours, slowedBy, standingsOf, verdictText } from './standing.ts'
import { sentencesOf } from './summary.ts'

/** Input of the summary in addition to the results. */
export interface MarkdownOptions {
  readonly scenarios: ReadonlyMap<string, Described>
  /** Returns the URL of a file, relative to the summary. */
  readonly linkTo: (path: string) => string
  /** Absolute path of the page. */
  readonly page: string
}

const GONE = 'This scenario no longer exists; these are its last results.'
/** Our figures that are listed beside a published one. */
const SHOWN = 4

/** Returns the whole document, which depends on the results only. */
export function markdownOf(results: Results, options: MarkdownOptions): string {
  return `${[
    '# Benchmarks',
    `\`npm run bench:report\` generates this page from the files of results that it names.
[report.html](${options.linkTo(options.page)}) shows the same results with plots; open it in a browser.
[bench/README.md](${options.linkTo('bench/README.md')}) explains the measurements and their limits.`,
    '## Summary',
    sentencesOf(results)
      .map((sentence) => `* ${plain(sentence)}`)
      .join('\n'),
    ...missing(results, options),
    ...scenarios(results, options),
    ...comparisons(results, options),
    ...beside(results),
    ...environment(results, options),
    ...aims(results),
  ].join('\n\n')}\n`
}

/** Returns a table. Escapes characters that would end a cell. */
export function markdownTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replace(/\s+/g, ' ').replaceAll('|', '\\|')).join(' | ')} |`
  return [line(headings), line(headings.map(() => '---')), ...rows.map(line)].join('\n')
}

/** Escapes text of a file of results, so that it contains no markup except code between backticks. */
const plain = (text: string) =>
  text
    .split(/(`[^`]+`)/)
    .map((part, index) => (index % 2 === 1 ? part : part.replace(/[\\`*_[\]<>]/g, '\\$&')))
    .join('')

function missing({ suite }: Results, { scenarios: all }: MarkdownOptions): readonly string[] {
  const { measured = [], failed = [] } = suite?.result ?? {}
  const tried = new Set([...measured, ...failed].map(({ scenario }) => scenario))
  const lines = [
    ...failed.map(
      ({ scenario, runtime, why }) => `* **failed:** \`${scenario}\`, ${runtime}: ${plain(why)}`,
    ),
    ...[...all]
      .filter(([id]) => !tried.has(id))
      .map(([id, { title }]) => `* not in these results: ${plain(title)} (\`${id}\`)`),
  ]
  return lines.length === 0 ? [] : ['## Missing results', lines.join('\n')]
}

function aims(results: Results): readonly string[] {
  const standings = standingsOf(results)
  if (standings.length === 0) return []
  const met = standings.filter(({ isMet }) => isMet).length
  return [
    '## Aims',
    `${met} of ${standings.length} aims are met. Missed aims come first.`,
    markdownTable(
      ['what', 'aim', 'measured', '', 'by'],
      standings.map((standing) => [
        plain(standing.what),
        plain(standing.aim),
        plain(standing.value),
        standing.isMet ? 'met' : `**${verdictText(standing)}**`,
        plain(standing.of),
      ]),
    ),
  ]
}

function environment(results: Results, { linkTo }: MarkdownOptions): readonly string[] {
  const { suite, again, soak, profile, comparisons: compared } = results
  const saved: readonly (Saved<Result> | undefined)[] = [
    ...[suite, ...again],
    ...[soak, profile, ...compared],
  ]
  return [
    '## Environment',
    markdownTable(
      ['results', 'date', 'command', 'revision', 'machine'],
      saved
        .filter((one) => one !== undefined)
        .map(({ path, result: { date, command, commit, machine } }) => [
          `[${path.split('/').at(-1)}](${linkTo(path)})`,
          dayOf(date),
          `\`${command}\``,
          `\`${commit.id}\`${commit.changed ? ', with changes' : ''}`,
          plain(`${machine.processor}, ${machine.cores} cores, ${machine.system}`),
        ]),
    ),
  ]
}

function beside(results: Results): readonly string[] {
  const oursOf = (ours: readonly Ours[]) => {
    const shown = ours
      .slice(0, SHOWN)
      .map(({ title, value, by }) => `${plain(title)}: ${plain(value)} (${by})`)
    const rest = ours.length - shown.length
    return [...shown, ...(rest > 0 ? [`${rest} more`] : [])].join('; ')
  }
  return [
    '## Published figures of other systems',
    PUBLISHED_NOTE,
    ...besides(results).flatMap(({ system, rows }) => [
      `### ${system}`,
      markdownTable(
        ['figure', 'published', 'measured here'],
        rows.map(({ published, ours }) => [
          plain(published.of),
          plain(published.value),
          ours.length > 0 ? oursOf(ours) : (published.notMeasured ?? 'no figure in these results'),
        ]),
      ),
    ]),
  ]
}

function scenarios({ suite }: Results, options: MarkdownOptions): readonly string[] {
  const measured = suite?.result.measured ?? []
  if (measured.length === 0) return []
  return [
    '## Scenarios',
    ...measured.flatMap(
      ({ scenario, title, runtime, figures, checks, tables = [], notes = [] }) => [
        `### ${title} (${runtime})`,
        options.scenarios.get(scenario)?.measures ?? GONE,
        ...(notes.length === 0 ? [] : [notes.map((note) => `* ${plain(note)}`).join('\n')]),
        ...(tables.length === 0 ? [figuresTable(figures)] : []),
        ...tables.flatMap((table) => [
          `${plain(table.title)}:`,
          markdownTable(
            table.headings.map(plain),
            table.rows.map((row) => row.map(plain)),
          ),
        ]),
        `Checked during the measurement: ${checks.map(({ what, seen }) => plain(`${what}: ${seen}`)).join('; ')}.`,
      ],
    ),
  ]
}

const figuresTable = (figures: readonly Figure[]) =>
  markdownTable(
    ['what', 'measured'],
    figures.map((figure) => [plain(figure.title), valueText(figure)]),
  )

function comparisons(results: Results, { linkTo }: MarkdownOptions): readonly string[] {
  const { comparisons: all } = results
  if (all.length === 0) return []
  return [
    '## Compared revisions',
    markdownTable(
      ['revisions', 'CPU of a request', 'of', 'verdict'],
      all.map(({ path, result: { base, head, cpu, pairs, verdict, options } }) => [
        `[${plain(base.name)} and ${plain(head.name)}](${linkTo(path)})${slowedBy(options.slowDownPercent)}`,
        intervalText(cpu),
        counted(pairs.length, 'pair'),
        verdict,
      ]),
    ),
  ]
}
