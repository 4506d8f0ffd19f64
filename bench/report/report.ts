/** The full report: every committed result as Markdown. The same results give the same text. */
import { basename } from 'node:path'
import { aimMet, aimText, dayOf, numberText, valueText } from './format.ts'
import { listOf, markdownTable, plain, plainTable } from './markdown.ts'
import published from './published.json' with { type: 'json' }
import type { Results, Run } from './results.ts'
import type { Compared, Figure } from './schema.ts'

/** Text of a scenario, in addition to its measurements. */
export interface Described {
  readonly title: string
  readonly measures: string
}

/** Scenarios that exist, by id. */
export type Scenarios = ReadonlyMap<string, Described>

/** Returns a URL relative to the document. */
export type LinkTo = (path: string) => string

/** A picture beside the document. */
export interface Picture {
  readonly path: string
  readonly alt: string
}

/** Own figures beside a published one. */
const MOST_BESIDE = 4

/** Returns the document. */
export function reportOf(
  results: Results,
  scenarios: Scenarios,
  linkTo: LinkTo,
  pictures: readonly Picture[] = [],
): string {
  const { runs, failed, soaks, profiles, comparisons } = results
  const current = runs.filter(({ measured }) => scenarios.has(measured.scenario))
  const earlier = runs.filter(({ measured }) => !scenarios.has(measured.scenario))
  return `${[
    // The site does not index this page.
    '---\nsearch: false\n---',
    '# Report of all benchmarks',
    `\`npm run bench:report\` generates this page from the files of results in \`bench/results\`. [Benchmarks](../benchmarks.md)
has the figures that matter, and says how they are measured.`,
    ...pictures.map(({ path, alt }) => `![${alt}](${linkTo(path)})`),
    ...(failed.length === 0 ? [] : ['## Failed scenarios', listOf(failed.map(failureText))]),
    ...current.flatMap((run) => runBlocks(run, scenarios.get(run.measured.scenario))),
    ...soaks.flatMap(({ path, result: { date, invariants, load, options, audit } }) => [
      `## Soak of ${dayOf(date)}${path.includes('-node') ? ' on Node' : ' on workerd'}`,
      `Two gateways over one Redis for ${numberText(options.minutes)} minutes, with ` +
        `${numberText(load.offeredPerSecond)} offered requests a second, and faults in turn: ` +
        `${numberText(load.requests)} requests. ${numberText(audit.matched)} of ` +
        `${numberText(audit.answered)} responses have exactly one audit event; ` +
        `${numberText(audit.diedWithGateway)} events were in memory of a killed gateway, and ` +
        `${numberText(audit.lost)} are lost.`,
      plainTable(
        ['invariant', 'measured', 'aim', ''],
        invariants.map(({ what, value, aim, holds }) => [what, value, aim, holdsText(holds)]),
      ),
    ]),
    ...profiles.flatMap(({ path, result: { cpuMicros, owners, stages, requests } }) => [
      `## Profile: ${basename(path)}`,
      `${numberText(requests)} requests; ${numberText(cpuMicros)} us of CPU each, with the profiler.`,
      plainTable(
        ['running code of', 'us', '%'],
        [
          ...(owners ?? []),
          ...(stages ?? []).map(({ stage, ...rest }) => ({ owner: stage, ...rest })),
        ]
          .filter(({ micros }) => micros > 0)
          .map(({ owner, micros, share }) => [owner, micros.toFixed(1), (100 * share).toFixed(1)]),
      ),
    ]),
    ...(comparisons.length === 0 ? [] : ['## Comparisons of revisions', comparisonTable(results)]),
    '## Published figures of other systems',
    'Figures that other systems publish about themselves, from other machines and in other languages: for ' +
      'orientation only. A figure of this project is in the last result that has a comparable one.',
    besideTable(runs),
    ...(earlier.length === 0
      ? []
      : ['## Scenarios that no longer exist', 'These are their last results.']),
    ...earlier.flatMap((run) => runBlocks(run, undefined)),
    '## Results files',
    environmentTable(results, linkTo),
  ].join('\n\n')}\n`
}

function failureText({ scenario, runtime, why }: Results['failed'][number]): string {
  return `\`${scenario}\`, ${runtime}: ${why}`
}

/** Returns one run. Earlier scenarios are below a heading of their own. */
function runBlocks({ measured, saved }: Run, described: Described | undefined): readonly string[] {
  const { title, runtime, figures, checks, notes = [], tables = [] } = measured
  const { path, result } = saved
  const isEarlier = described === undefined
  const { id, changed } = result.commit
  const source =
    `Measured on ${dayOf(result.date)} at revision ${id}${changed ? ' with changes' : ''}, by ` +
    `\`${result.command}\`: ${basename(path)}.`
  return [
    `${described === undefined ? '###' : '##'} ${plain(described?.title ?? title)} (${runtime})`,
    ...(described === undefined ? [] : [plain(described.measures)]),
    listOf([source, ...notes]),
    ...tables.flatMap(({ title: of, headings, rows }) => [
      `${plain(of)}:`,
      plainTable(headings, rows),
    ]),
    ...figureTable(
      isEarlier && tables.length > 0 ? figures.filter(({ aim }) => aim !== undefined) : figures,
    ),
    `Checked during the measurement: ${plain(checks.map(({ what, seen }) => `${what}: ${seen}`).join('; ') || 'nothing')}.`,
  ]
}

function figureTable(figures: readonly Figure[]): readonly string[] {
  if (figures.length === 0) return []
  return [
    plainTable(
      ['figure', 'measured', 'aim', ''],
      figures.map((figure) => [
        figure.title,
        valueText(figure),
        aimText(figure),
        figure.aim === undefined ? '' : aimMet(figure) ? 'met' : 'missed',
      ]),
    ),
  ]
}

const holdsText = (holds: boolean | undefined): string =>
  holds === undefined ? 'too short to decide' : holds ? 'holds' : 'broken'

function comparisonTable({ comparisons }: Results): string {
  const ratio = ({ median, low, high }: Compared['cpu']) =>
    `${median.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`
  return plainTable(
    ['HEAD', 'BASE', 'runtime', 'CPU of HEAD to BASE', 'pairs', 'starts', 'verdict'],
    comparisons.map(({ result: { head, base, cpu, pairs, starts = [cpu], verdict, options } }) => {
      const slowed = options.slowDownPercent
      return [
        `${head.name}${slowed === 0 ? '' : `, slowed down by ${slowed} %`}`,
        base.name,
        `${options.runtime ?? 'workerd'}${options.durable ? ', durable audit' : ''}`,
        ratio(cpu),
        String(pairs.length),
        String(starts.length),
        `${verdict} at ${options.thresholdPercent} %`,
      ]
    }),
  )
}

function besideTable(runs: readonly Run[]): string {
  const all = runs.flatMap(({ measured: { figures, runtime } }) =>
    figures.map((figure) => ({ figure, runtime })),
  )
  return plainTable(
    ['system', 'figure', 'published', 'measured here'],
    Object.entries(published).map(([id, { system, of, value }]) => {
      const own = all.filter(({ figure }) => figure.beside?.includes(id)).slice(0, MOST_BESIDE)
      const texts = own.map(
        ({ figure, runtime }) => `${figure.title}: ${valueText(figure)} (${runtime})`,
      )
      return [system, of, value, texts.join('; ') || '-']
    }),
  )
}

function environmentTable({ runs, soaks, profiles, comparisons }: Results, linkTo: LinkTo): string {
  const files = new Map(
    [...runs.map(({ saved }) => saved), ...soaks, ...profiles, ...comparisons].map((one) => [
      one.path,
      one.result,
    ]),
  )
  return markdownTable(
    ['results', 'command', 'revision', 'machine', 'versions'],
    [...files].map(([path, { command, commit, machine, versions, redis }]) => {
      const { processor, cores, memoryGiB, system, loadAverageBefore } = machine
      const names = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
      return [
        `[${basename(path)}](${linkTo(path)})`,
        `\`${command}\``,
        `\`${commit.id}\`${commit.changed ? ', with changes' : ''}`,
        plain(
          `${processor}, ${cores} cores, ${numberText(memoryGiB)} GiB, ${system}; load before ${loadAverageBefore.join(', ')}`,
        ),
        plain(`${names.join(', ')}; Redis: ${redis}`),
      ]
    }),
  )
}
