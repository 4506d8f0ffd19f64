/** The summary at the top of the page: the most important figures in words and charts. */
import type { Plot } from '../scenario.ts'
import { counted } from './format.ts'
import { type Headline, headlinesOf } from './headlines.ts'
import { type Html, html, tableOf } from './html.ts'
import { dataOf, legendOf, plotSvg } from './plot.ts'
import type { Results } from './results.ts'
import type { Section } from './section.ts'
import { anchorOf, standingsOf, verdictText } from './standing.ts'

/** Charts of the summary: scenario and plot. Results of `workerd serve` only. */
const CHARTS = [
  ['layers', 'layer-cpu'],
  ['peers', 'cpu'],
  ['offered-load', 'latency'],
] as const
/** Maximum number of points in a table; more are only in the results file. */
const MAX_POINTS = 60

/** Returns a badge: `met` in green, `missed` in red, undecided in grey. */
export function badge(isMet: boolean | undefined): Html {
  const tone = isMet === undefined ? 'open' : isMet ? 'good' : 'bad'
  return html`<span class="badge ${tone}">${verdictText({ isMet })}</span>`
}

/** Returns the summary as sentences, also for the Markdown page. */
export function sentencesOf(results: Results): readonly string[] {
  const standings = standingsOf(results)
  const met = standings.filter(({ isMet }) => isMet).length
  const { measured = [], failed = [] } = results.suite?.result ?? {}
  const runs = measured.length + failed.length
  return [
    `${counted(runs, 'run')} of scenarios, of which ${failed.length} failed. ` +
      `${met} of ${standings.length} aims are met.`,
    ...headlinesOf(results).map(sentenceOf),
  ]
}

function sentenceOf({ what, value, aim }: Headline): string {
  const sentence = `${what.slice(0, 1).toUpperCase()}${what.slice(1)}: ${value}`
  return aim === '' ? `${sentence}.` : `${sentence} (${aim}).`
}

export function summary(results: Results): Section {
  const [total = '', ...sentences] = sentencesOf(results)
  const headlines = headlinesOf(results)
  const measured = results.suite?.result.measured ?? []
  const charts = CHARTS.flatMap(([scenario, id]): readonly Html[] => {
    const of = measured.find((one) => one.scenario === scenario && one.runtime === 'workerd')
    const plot = of?.plots?.find((one) => one.id === id)
    if (of === undefined || plot === undefined) return []
    const link = html`<a href="#${anchorOf(of)}">${of.title}</a>`
    return [figureOf(plot, `summary-${scenario}`, html`${plot.title} (${link})`)]
  })
  const list = sentences.map((sentence, index) => {
    const { anchor = '', isMet, aim = '' } = headlines[index] ?? {}
    return html`<li><a href="#${anchor}">${sentence}</a>${aim === '' ? undefined : html` ${badge(isMet)}`}</li>`
  })
  return {
    id: 'summary',
    title: 'Summary',
    body: html`<p>${total}</p><ul>${list}</ul>${charts}`,
  }
}

export function figureOf(plot: Plot, anchor: string, caption: Html = html`${plot.title}`): Html {
  const rows = dataOf(plot)
  const headings = [
    plot.kind === 'line' ? plot.x.title : '',
    ...plot.series.map(({ name }) => name),
  ]
  const data =
    rows.length > MAX_POINTS
      ? undefined
      : html`<details><summary>As a table</summary>${tableOf(
          `${plot.title}: ${plot.y.title}`,
          headings,
          rows,
        )}</details>`
  return html`<figure><figcaption>${caption}</figcaption>
${plot.series.length > 1 ? legendOf(plot) : undefined}
<div class="wide" role="region" aria-label="Plot: ${plot.title}" tabindex="0">${plotSvg(
    plot,
    anchor,
  )}</div>
${data}</figure>`
}
