/** The page of the overview. */
import { html } from 'hono/html'
import type * as z from 'zod/mini'
import { type Summary, summarySchema } from '../../audit/summary.ts'
import { type ConsolePage, LIVE_PARAMETER, type Markup, pathTo, when } from './layout.ts'
import { card, facts, NO_STORE_TEXT, numberOf, percent, periodLinks } from './markup.ts'
import type { PageDefinition, Query } from './page.ts'
import { timesOf, withPeriod } from './period.ts'
import { policyChangesView } from './policy-history.ts'
import { type PolicyView, policyView } from './policy-view.ts'
import { statusView } from './status.ts'
import { chartOf, facet, incomplete } from './summary-parts.ts'

type Status = z.infer<typeof statusView>

export const OVERVIEW: PageDefinition = {
  path: '',
  id: 'open',
  name: 'Overview',
  async show(desk) {
    const query = withPeriod(desk.query)
    const times = timesOf(query, desk.nowMs)
    return overviewPage(
      await desk.readAudit('summarizeAudit', summarySchema, { query: times }),
      await desk.read('readPolicy', policyView),
      await desk.read('readStatus', statusView),
      (await desk.read('readPolicyChanges', policyChangesView))?.changes[0]?.at,
      query,
      desk.nowMs,
    )
  },
}

function overviewPage(
  summary: Summary | undefined,
  policy: PolicyView | undefined,
  status: Status | undefined,
  changedAt: string | undefined,
  query: Query,
  nowMs: number,
): ConsolePage {
  const isLive = query[LIVE_PARAMETER] === '1'
  return {
    title: 'Overview',
    at: 'Overview',
    refreshSeconds: isLive ? 10 : undefined,
    content: html`${periodLinks('', query)}
<p><a href="${pathTo('', { ...query, [LIVE_PARAMETER]: isLive ? undefined : '1' })}">${
      isLive ? 'Stop loading every 10 seconds' : 'Load again every 10 seconds'
    }</a></p>
${summary === undefined ? html`<p class="note">${NO_STORE_TEXT}</p>` : decisionsIn(summary, query)}
<div class="grid">${status === undefined ? '' : card('State of all gateways', statusFacts(status, nowMs))}${
      policy === undefined
        ? ''
        : card('Gateway', html`${gatewayFacts(policy)}${lastChange(changedAt)}`)
    }</div>`,
  }
}

const lastChange = (at: string | undefined): Markup | '' =>
  at === undefined
    ? ''
    : html`<p>Policy changed ${when(at)} UTC: <a href="${pathTo('/policy')}">what changed</a></p>`

const DEPENDENCIES: Readonly<Record<string, string>> = {
  redis: 'Redis',
  key_set: 'Issuers',
  identity_provider: 'Identity providers',
  introspection: 'Token introspection',
  authority: 'Decision points',
  origin: 'Origins',
}

const stateOf = (open: number, isolates: number): Markup =>
  open === 0
    ? html`<span class="allow">works</span>`
    : html`<span class="error">fails in ${numberOf(open)} of ${numberOf(isolates)} isolates</span>`

function statusFacts(
  { isolates, open, auditEvents, auditWaiting, newestEventAt }: Status,
  nowMs: number,
): Markup {
  const behind = newestEventAt === null ? undefined : Math.max(0, nowMs - Date.parse(newestEventAt))
  return facts([
    ['Isolates', numberOf(isolates)],
    ...Object.entries(open).map(
      ([name, count]) => [DEPENDENCIES[name] ?? name, stateOf(count, isolates)] as const,
    ),
    [
      'Audit queue',
      `${numberOf(auditWaiting)} events wait, ${numberOf(auditEvents.lost ?? 0)} were lost`,
    ],
    [
      'Newest event',
      behind === undefined ? 'none' : `${numberOf(Math.round(behind / 1_000))} seconds ago`,
    ],
  ])
}

function decisionsIn(summary: Summary, query: Query): Markup {
  const { allow, deny, error, durationMs, facets, since, countedSince, until } = summary
  const all = allow + deny + error
  const startMs = Math.max(Date.parse(since), Date.parse(countedSince))
  const seconds = Math.max(1, (Date.parse(until) - startMs) / 1_000)
  const tiles: readonly (readonly [string, string])[] = [
    ['Requests', numberOf(all)],
    ['Per second', (all / seconds).toFixed(all / seconds < 10 ? 2 : 0)],
    ['Refused', percent(deny, all)],
    ['Failed', percent(error, all)],
    ['p50', durationMs === null ? '-' : `${Math.round(durationMs.p50)} ms`],
    ['p99', durationMs === null ? '-' : `${Math.round(durationMs.p99)} ms`],
  ]
  const { [LIVE_PARAMETER]: _, ...rest } = query
  return html`<dl class="tiles">${tiles.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
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
