/** The chart of decisions: a bar for each part of a period, which is a link to this part. */
import { html } from 'hono/html'
import type { Summary } from '../../audit/summary.ts'
import type { Markup } from './layout.ts'

const WIDTH = 960
const BASE = 136
const DECISIONS = ['allow', 'deny', 'error'] as const

/** `linkTo` returns the page of a part of the period. */
export function decisionChart(
  {
    buckets,
    bucketSeconds,
    since,
    until,
  }: Pick<Summary, 'buckets' | 'bucketSeconds' | 'since' | 'until'>,
  linkTo: (since: string, until: string) => string,
): Markup {
  const totals = buckets.map(({ allow, deny, error }) => allow + deny + error)
  // An axis without bars reads as a picture that failed to load.
  if (!totals.some((total) => total > 0))
    return html`<p class="empty">No requests in this period.</p>`
  const most = Math.max(1, ...totals)
  const step = WIDTH / Math.max(1, buckets.length)
  const bars = buckets.map((bucket, at) => {
    const x = at * step
    const end = new Date(Date.parse(bucket.time) + bucketSeconds * 1_000).toISOString()
    const label = `${shortTime(bucket.time)}: ${bucket.allow} allowed, ${bucket.deny} refused, ${bucket.error} failed`
    let y = BASE
    const parts = DECISIONS.map((decision) => {
      const height = (bucket[decision] / most) * (BASE - 8)
      y -= height
      return html`<rect class="${decision}" x="${(x + 1).toFixed(1)}" y="${y.toFixed(1)}" width="${Math.max(1, step - 2).toFixed(1)}" height="${height.toFixed(1)}"></rect>`
    })
    const slot = html`<rect class="slot" x="${x.toFixed(1)}" y="0" width="${step.toFixed(1)}" height="${BASE}"></rect>`
    return totals[at] === 0
      ? ''
      : html`<a href="${linkTo(bucket.time, end)}" aria-label="${label}"><title>${label}</title>${slot}${parts}</a>`
  })
  return html`<svg viewBox="0 0 ${WIDTH} ${BASE}" preserveAspectRatio="none" role="group" aria-label="Decisions by time">${bars}</svg>
<p class="axis"><span>${shortTime(since)}</span><span>${shortTime(until)} UTC</span></p>
<p class="key"><span class="allow">&#9632; allowed</span><span class="deny">&#9632; refused</span><span class="error">&#9632; failed</span></p>`
}

const shortTime = (time: string): string => time.slice(5, 16).replace('T', ' ')
