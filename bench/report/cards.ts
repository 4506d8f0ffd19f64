/** What the page says first. */
import { counted } from './format.ts'
import { type Headline, headlinesOf } from './headlines.ts'
import { type Html, html } from './html.ts'
import type { Results } from './results.ts'
import { standingsOf, verdictText } from './standing.ts'

/** `met` in green, `missed` in red, and what cannot be told in grey. */
export function badge(isMet: boolean | undefined): Html {
  const tone = isMet === undefined ? 'open' : isMet ? 'good' : 'bad'
  return html`<span class="badge ${tone}">${verdictText({ isMet })}</span>`
}

/** How many aims are met, how many scenarios failed, and the headlines. */
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
