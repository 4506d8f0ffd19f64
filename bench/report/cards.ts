/** The summary at the top of the page. */
import { counted } from './format.ts'
import { type Headline, headlinesOf } from './headlines.ts'
import { type Html, html } from './html.ts'
import type { Results } from './results.ts'
import { standingsOf, verdictText } from './standing.ts'

/** Returns a badge: `met` in green, `missed` in red, undecided in grey. */
export function badge(isMet: boolean | undefined): Html {
  const tone = isMet === undefined ? 'open' : isMet ? 'good' : 'bad'
  return html`<span class="badge ${tone}">${verdictText({ isMet })}</span>`
}

/** Returns the number of met targets and failed scenarios, and the headlines. */
export function cards(results: Results): Html {
  const standings = standingsOf(results)
  const met = standings.filter(({ isMet }) => isMet).length
  const { measured = [], failed = [] } = results.suite?.result ?? {}
  return html`<ul class="cards" aria-label="In short">
<li><b>${met} of ${standings.length}</b><span>aims met</span></li>
<li><b>${failed.length}</b><span>failed, of ${counted(measured.length + failed.length, 'run')}
of scenarios</span></li>
${headlinesOf(results).map(card)}
</ul>`
}

function card({ what, value, isMet, aim, anchor }: Headline): Html {
  const verdict = aim === '' ? undefined : html`<span>${badge(isMet)}</span>`
  return html`<li><b>${value}</b><span><a href="#${anchor}">${what}</a></span>${verdict}</li>`
}
