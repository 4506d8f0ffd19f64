/** The summary at the top of the report: the most important figures in words and charts. */
import type { Block, Section } from './content.ts'
import { counted } from './format.ts'
import { type Headline, headlinesOf } from './headlines.ts'
import type { Results } from './results.ts'
import { anchorOf, standingsOf } from './standing.ts'

/** Charts of the summary: scenario and plot. Results of `workerd serve` only. */
const CHARTS = [
  ['layers', 'layer-cpu'],
  ['peers', 'cpu'],
  ['offered-load', 'latency'],
] as const

export function summary(results: Results): Section {
  const standings = standingsOf(results)
  const met = standings.filter(({ isMet }) => isMet).length
  const { measured = [], failed = [] } = results.suite?.result ?? {}
  const runs = measured.length + failed.length
  const total =
    `${counted(runs, 'run')} of scenarios, of which ${failed.length} failed. ` +
    `${met} of ${standings.length} aims are met.`
  const charts = CHARTS.flatMap(([scenario, id]): readonly Block[] => {
    const of = measured.find((one) => one.scenario === scenario && one.runtime === 'workerd')
    const plot = of?.plots?.find((one) => one.id === id)
    if (of === undefined || plot === undefined) return []
    const source = { text: of.title, anchor: anchorOf(of) }
    return [{ kind: 'plot', plot, anchor: `summary-${scenario}`, source }]
  })
  const items = headlinesOf(results).map((headline) => ({
    text: sentenceOf(headline),
    anchor: headline.anchor,
  }))
  return {
    id: 'summary',
    title: 'Summary',
    blocks: [{ kind: 'list', items: [total, ...items] }, ...charts],
  }
}

function sentenceOf({ what, value, aim }: Headline): string {
  const sentence = `${what.slice(0, 1).toUpperCase()}${what.slice(1)}: ${value}`
  return aim === '' ? `${sentence}.` : `${sentence} (${aim}).`
}
