/** Sections about all scenarios. */
import { PUBLISHED_NOTE } from '../published.ts'
import { counted, dayOf, numberText } from './format.ts'
import { type Html, html, tableOf } from './html.ts'
import type { Results, Saved } from './results.ts'
import type { Result } from './schema.ts'
import type { PageOptions, Section } from './section.ts'
import { besides, type Ours, standingsOf } from './standing.ts'
import { badge } from './summary.ts'

/** Number of own figures beside a published figure; the rest is collapsed. */
const SHOWN = 4

/** Returns the section about missing results; undefined if there are none. */
export function failures({ suite }: Results, { scenarios }: PageOptions): Section | undefined {
  const { measured = [], failed = [] } = suite?.result ?? {}
  const tried = new Set([...measured, ...failed].map(({ scenario }) => scenario))
  const untried = [...scenarios].filter(([id]) => !tried.has(id))
  if (failed.length === 0 && untried.length === 0) return undefined
  const alarm = html`<div class="alarm" role="note">
<h3>${counted(failed.length, 'run')} of a scenario failed</h3>
<p>A scenario fails at the first wrong response. It then has no figures.</p>
<ul>${failed.map(
    ({ scenario, runtime, why }) => html`<li><code>${scenario}</code>, ${runtime}: ${why}</li>`,
  )}</ul></div>`
  const absent = html`<div class="note"><p>Not in these results:</p><ul>${untried.map(
    ([id, { title }]) => html`<li>${title} (<code>${id}</code>)</li>`,
  )}</ul></div>`
  return {
    id: 'missing',
    title: 'Missing results',
    body: html`${failed.length > 0 ? alarm : undefined}${untried.length > 0 ? absent : undefined}`,
  }
}

/** Returns each target with its measured value. */
export function aims(results: Results): Section {
  const standings = standingsOf(results)
  const rows = standings.map(({ what, aim, value, isMet, anchor, of }) => [
    what,
    aim,
    value,
    badge(isMet),
    html`<a href="#${anchor}">${of}</a>`,
  ])
  const body =
    rows.length === 0
      ? html`<p>These results have no aims.</p>`
      : tableOf(
          'Aims and measured values; missed aims come first',
          ['what', 'aim', 'measured', '', 'by'],
          rows,
        )
  return { id: 'aims', title: 'Aims', body }
}

/** Returns the section about machine, revision and command. */
export function environment(results: Results, { linkTo }: PageOptions): Section {
  const { suite, again, soak, profile, comparisons } = results
  const saved: readonly (Saved<Result> | undefined)[] = [
    ...[suite, ...again],
    ...[soak, profile, ...comparisons],
  ]
  const rows = saved
    .filter((one) => one !== undefined)
    .map(({ path, result }) => {
      const { commit, machine, versions, redis } = result
      return [
        html`<a href="${linkTo(path)}">${path.split('/').at(-1)}</a>`,
        html`<time>${dayOf(result.date)}</time>`,
        html`<code>${result.command}</code>`,
        html`<code>${commit.id}</code>${commit.changed ? ', with changes' : ''}`,
        `${machine.processor}, ${machine.cores} cores, ${numberText(machine.memoryGiB)} GiB, ${
          machine.system
        }; load before ${machine.loadAverageBefore.join(', ')}`,
        `${Object.entries(versions)
          .map(([name, version]) => `${name} ${version}`)
          .join(', ')}; Redis: ${redis}`,
      ]
    })
  const headings = ['results', 'date', 'command', 'revision', 'machine', 'versions']
  const caption = 'The results files of this page'
  return {
    id: 'environment',
    title: 'Environment',
    body: tableOf(caption, headings, rows),
  }
}

/** Returns published figures with comparable own figures. */
export function beside(results: Results): Section {
  const systems = besides(results)
  return {
    id: 'beside',
    title: 'Published figures of other systems',
    parts: systems.map(({ system }, index) => ({ id: `beside-${index}`, title: system })),
    body: html`<p>${PUBLISHED_NOTE}</p>${systems.map(
      ({ system, rows }, index) =>
        html`<h3 id="beside-${index}">${system}</h3>${tableOf(
          `Published by ${system}, and measured here`,
          ['figure', 'published', 'measured here'],
          rows.map(({ published, ours }) => [
            published.of,
            published.value,
            ours.length > 0
              ? oursOf(ours)
              : (published.notMeasured ?? 'no figure in these results'),
          ]),
        )}`,
    )}`,
  }
}

function oursOf(ours: readonly Ours[]): Html {
  const rest = ours.slice(SHOWN)
  return html`${listOf(ours.slice(0, SHOWN))}${
    rest.length === 0
      ? undefined
      : html`<details><summary>${rest.length} more</summary>${listOf(rest)}</details>`
  }`
}

const listOf = (all: readonly Ours[]) =>
  html`<ul>${all.map(
    ({ title, value, by, anchor }) =>
      html`<li><a href="#${anchor}">${title}</a>: <b>${value}</b> (${by})</li>`,
  )}</ul>`
