/** The page of the overview. */
import { html } from 'hono/html'
import type * as z from 'zod/mini'
import { type Summary, summarySchema } from '../../audit/summary.ts'
import {
  CONSOLE_PATH,
  LIVE_PARAMETER,
  type Markup,
  OVERVIEW_STREAM_PATH,
  pathTo,
  when,
} from './layout.ts'
import { card, facts, NO_STORE_TEXT, numberOf, percent, periodLinks, streamBox } from './markup.ts'
import type { Desk, PageDefinition, Query } from './page.ts'
import { timesOf, withPeriod } from './period.ts'
import { policyChangesView } from './policy-history.ts'
import { type PolicyView, policyView } from './policy-view.ts'
import { statusView } from './status.ts'
import { chartOf, countedIn, facet, incomplete } from './summary-parts.ts'

type Change = z.infer<typeof policyChangesView>['changes'][number]

export const OVERVIEW: PageDefinition = {
  path: '',
  id: 'open',
  name: 'Overview',
  async show(desk) {
    const query = withPeriod(desk.query)
    const isReloaded = query[LIVE_PARAMETER] === '1'
    // A period that has ended does not change.
    const isOpen = query.until === undefined && !isReloaded
    const read = await readFigures(desk, query)
    const isLive = isOpen && (read.summary !== undefined || read.status !== undefined)
    const link = html`<p><a href="${pathTo('', { ...query, [LIVE_PARAMETER]: isReloaded ? undefined : '1' })}">${
      isReloaded ? 'Stop loading every 10 seconds' : 'Load again every 10 seconds'
    }</a></p>`
    return {
      ...{ title: 'Overview', at: 'Overview' },
      ...(isLive && { stream: OVERVIEW_STREAM_PATH }),
      refreshSeconds: isReloaded ? 10 : undefined,
      content: html`${periodLinks('', query)}
${isLive ? html`<noscript>${link}</noscript>${streamBox(pathTo(OVERVIEW_STREAM_PATH.slice(CONSOLE_PATH.length), query))}` : link}
<div id="figures">${figures(read, query, desk.nowMs)}</div>`,
    }
  },
}

/** What the overview shows, as far as the visitor may read it. */
export async function readFigures(desk: Desk, query: Query, nowMs = desk.nowMs) {
  const [summary, policy, status, history] = await Promise.all([
    desk.readAudit('summarizeAudit', summarySchema, { query: timesOf(query, nowMs) }),
    desk.read('readPolicy', policyView),
    desk.read('readStatus', statusView),
    desk.read('readPolicyChanges', policyChangesView),
  ])
  return { summary, policy, status, change: history?.changes[0] }
}

/** `perSecond` is the present rate of all gateways, from the shared counters. Default: it is not known yet. */
export const figures = (
  { summary, policy, status, change }: Awaited<ReturnType<typeof readFigures>>,
  query: Query,
  nowMs: number,
  perSecond?: number,
): Markup => html`<p class="note">At ${when(new Date(nowMs).toISOString())} UTC</p>
${summary === undefined ? html`<p class="note">${NO_STORE_TEXT}</p>` : decisionsIn(summary, query)}
<div class="grid">${status === undefined ? '' : card('State of all gateways', statusFacts(status, nowMs, perSecond))}${
  policy === undefined ? '' : card('Gateway', html`${gatewayFacts(policy)}${lastChange(change)}`)
}</div>`

const lastChange = (change: Change | undefined): Markup | '' =>
  change === undefined
    ? ''
    : html`<p>Policy changed ${when(change.at)} UTC${change.by === null ? '' : ` by ${change.by}`}: <a href="${pathTo('/policy')}">what changed</a></p>`

const DEPENDENCIES: Readonly<Record<string, string>> = {
  redis: 'Redis',
  key_set: 'Issuers',
  identity_provider: 'Identity providers',
  introspection: 'Token introspection',
  authority: 'Decision points',
  origin: 'Origins',
}

export const sumOf = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)

const rateOf = (perSecond: number): string => perSecond.toFixed(perSecond < 10 ? 2 : 0)

const stateOf = (open: number, isolates: number): Markup =>
  open === 0
    ? html`<span class="allow">works</span>`
    : html`<span class="error">fails in ${numberOf(open)} of ${numberOf(isolates)} instances</span>`

function statusFacts(
  { isolates, open, auditEvents, auditWaiting, newestEventAt }: z.infer<typeof statusView>,
  nowMs: number,
  perSecond: number | undefined,
): Markup {
  const behind = newestEventAt === null ? undefined : Math.max(0, nowMs - Date.parse(newestEventAt))
  return html`${facts([
    ['Running instances', numberOf(isolates)],
    ...(perSecond === undefined
      ? []
      : [['Now', `${rateOf(perSecond)} decisions per second, in the last minute`] as const]),
    ...Object.entries(open).map(
      ([name, count]) => [DEPENDENCIES[name] ?? name, stateOf(count, isolates)] as const,
    ),
    [
      'Audit queue',
      `${numberOf(auditWaiting)} events wait, ${numberOf(auditEvents.lost ?? 0)} were lost since the counters began`,
    ],
    [
      'Newest event',
      behind === undefined ? 'none' : `${numberOf(Math.round(behind / 1_000))} seconds ago`,
    ],
  ])}<p class="note">From the shared counters in Redis: each instance reports every 10 seconds.</p>`
}

function decisionsIn(summary: Summary, query: Query): Markup {
  const { allow, deny, error, durationMs, facets, since, countedSince, until } = summary
  const all = allow + deny + error
  const startMs = Math.max(Date.parse(since), Date.parse(countedSince))
  const seconds = Math.max(1, (Date.parse(until) - startMs) / 1_000)
  const tiles: readonly (readonly [string, string])[] = [
    ['Requests', numberOf(all)],
    ['Per second', rateOf(all / seconds)],
    ['Refused', percent(deny, all)],
    ['Failed', percent(error, all)],
    ['Median time (p50)', durationMs === null ? '-' : `${Math.round(durationMs.p50)} ms`],
    ['99 % within (p99)', durationMs === null ? '-' : `${Math.round(durationMs.p99)} ms`],
  ]
  const { [LIVE_PARAMETER]: _, ...rest } = query
  return html`<p class="note">${countedIn(summary)}</p>
<dl class="tiles">${tiles.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
${card('Decisions', html`${chartOf(summary, rest)}${incomplete(summary)}`)}
<div class="grid">${facet('Refusals by reason', 'reason', facets.reason, rest)}${facet('Routes', 'route', facets.route, rest)}</div>`
}

export const gatewayFacts = ({
  publicUrl,
  issuers,
  routes,
  roles,
  features,
  hasAuditStore,
}: PolicyView): Markup =>
  facts([
    ['Address', publicUrl],
    ['Issuers', issuers.join(', ')],
    ['Policy', `${routes.length} routes, ${roles.length} roles`],
    ['Features', features.join(', ')],
    ['Audit database', hasAuditStore ? 'connected' : 'none'],
  ])
