/** Sections about all results. */
import { PUBLISHED_NOTE } from '../published.ts'
import { type Block, badgeOf, type Linked, type Scenarios, type Section } from './content.ts'
import { counted, dayOf, numberText } from './format.ts'
import type { Results } from './results.ts'
import { besides, type Ours, standingsOf, type Verdict } from './standing.ts'

/** Number of own figures beside a published figure. */
const SHOWN = 4

/** Returns the section about missing results; undefined if there are none. */
export function failures({ suite }: Results, scenarios: Scenarios): Section | undefined {
  const { measured = [], failed = [] } = suite?.result ?? {}
  const tried = new Set([...measured, ...failed].map(({ scenario }) => scenario))
  const untried = [...scenarios].filter(([id]) => !tried.has(id))
  if (failed.length === 0 && untried.length === 0) return undefined
  const alarm: readonly Block[] = [
    {
      kind: 'text',
      text:
        `${counted(failed.length, 'run')} of a scenario failed. A scenario fails at the first wrong ` +
        'response. It then has no figures.',
    },
    {
      kind: 'list',
      items: failed.map(({ scenario, runtime, why }) => `\`${scenario}\`, ${runtime}: ${why}`),
      tone: 'alarm',
    },
  ]
  const absent: readonly Block[] = [
    { kind: 'text', text: 'Not in these results:' },
    { kind: 'list', items: untried.map(([id, { title }]) => `${title} (\`${id}\`)`), tone: 'note' },
  ]
  return {
    id: 'missing',
    title: 'Missing results',
    blocks: [...(failed.length > 0 ? alarm : []), ...(untried.length > 0 ? absent : [])],
  }
}

/** Returns each target with its measured value. */
export function aims(results: Results): Section {
  const standings = standingsOf(results)
  const met = standings.filter(({ isMet }) => isMet).length
  return {
    id: 'aims',
    title: 'Aims',
    blocks: [
      { kind: 'text', text: `${met} of ${standings.length} aims are met.` },
      {
        kind: 'table',
        title: 'Aims and measured values; missed aims come first',
        headings: ['what', 'aim', 'measured', '', 'by'],
        rows: standings.map(({ what, aim, value, isMet, anchor, of }) => [
          what,
          aim,
          value,
          badgeOf(isMet),
          { text: of, anchor },
        ]),
      },
    ],
  }
}

/** Returns the section about machine, revision and command. */
export function environment({ suite, again, soak, profile, comparisons }: Results): Section {
  const saved = [suite, ...again, soak, profile, ...comparisons].filter((one) => one !== undefined)
  return {
    id: 'environment',
    title: 'Environment',
    blocks: [
      {
        kind: 'table',
        title: 'The results files',
        headings: ['results', 'date', 'command', 'revision', 'machine', 'versions'],
        rows: saved.map(({ path, result }) => {
          const { commit, machine, versions, redis } = result
          const { processor, cores, memoryGiB, system, loadAverageBefore } = machine
          const names = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
          return [
            { text: path.split('/').at(-1) ?? '', file: path },
            dayOf(result.date),
            `\`${result.command}\``,
            `\`${commit.id}\`${commit.changed ? ', with changes' : ''}`,
            `${processor}, ${cores} cores, ${numberText(memoryGiB)} GiB, ${system}; load before ${loadAverageBefore.join(', ')}`,
            `${names.join(', ')}; Redis: ${redis}`,
          ]
        }),
      },
    ],
  }
}

/** Returns published figures with comparable own figures. */
export const beside = (results: Results): Section => ({
  id: 'beside',
  title: 'Published figures of other systems',
  blocks: [
    { kind: 'text', text: PUBLISHED_NOTE },
    ...besides(results).flatMap(({ system, rows }, index): readonly Block[] => [
      { kind: 'heading', text: system, id: `beside-${index}` },
      {
        kind: 'table',
        title: `Published by ${system}, and measured here`,
        headings: ['figure', 'published', 'measured here', 'verdict'],
        rows: rows.map(({ published, ours, verdicts }) => [
          published.of,
          published.value,
          ours.length > 0 ? linksOf(ours) : (published.notMeasured ?? 'no figure in these results'),
          verdicts.length > 0 ? verdicts.map(verdictText).join('; ') : 'not compared',
        ]),
      },
    ]),
  ],
})

function verdictText({ by, good, of }: Verdict): string {
  if (good === of) return `${by}: as good or better`
  return good === 0 ? `${by}: worse` : `${by}: ${of - good} of ${of} worse`
}

function linksOf(ours: readonly Ours[]): readonly Linked[] {
  const shown = ours.slice(0, SHOWN).map(({ title, value, by, anchor }) => ({
    text: `${title}: ${value} (${by})`,
    anchor,
  }))
  const rest = ours.length - shown.length
  return rest > 0 ? [...shown, { text: `${rest} more` }] : shown
}
