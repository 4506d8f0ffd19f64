/** The pages of the console, from what the operators' calls return. Every value is escaped by hono's `html`. */
import { html } from 'hono/html'
import type { AuditEvent } from '../../audit/event.ts'
import type { Summary } from '../../audit/summary.ts'
import { callerActions } from './action-forms.ts'
import type { PolicyView } from './calls.ts'
import { decisionChart } from './chart.ts'
import { type ConsolePage, type Markup, pathTo, table, when } from './layout.ts'

export type Query = Readonly<Record<string, string | undefined>>

/** The periods that a page offers, in seconds. */
export const PERIODS: Readonly<Record<string, number>> = {
  '15m': 900,
  '1h': 3_600,
  '6h': 21_600,
  '24h': 86_400,
  '7d': 604_800,
}

export const NO_STORE_TEXT =
  'The gateway has no audit database, or your role lacks portcullis:audit:read: decisions cannot be shown.'

export const card = (title: string, content: Markup | string): Markup =>
  html`<section class="card"><h2>${title}</h2>${content}</section>`

export const numberOf = (value: number): string => value.toLocaleString('en-US')

const percent = (part: number, all: number): string =>
  all === 0 ? '0 %' : `${((part / all) * 100).toFixed(part === 0 ? 0 : 1)} %`

const periodLinks = (path: string, query: Query): Markup =>
  html`<ul class="links" aria-label="Period">${Object.keys(PERIODS).map(
    (last) =>
      html`<li>${
        query.last === last
          ? html`<a aria-current="true" href="${pathTo(path, { ...query, last, since: undefined, until: undefined })}">${last}</a>`
          : html`<a href="${pathTo(path, { ...query, last, since: undefined, until: undefined })}">${last}</a>`
      }</li>`,
  )}</ul>`

const incomplete = ({ since, countedSince }: Summary): Markup | '' =>
  countedSince > since
    ? html`<p class="note">The period has more events than one summary reads: the counts begin at ${when(countedSince)} UTC.</p>`
    : ''

const facet = (
  title: string,
  name: string,
  counts: Summary['facets']['reason'],
  query: Query,
): Markup =>
  card(
    title,
    table(
      title,
      ['Value', 'Requests'],
      counts
        .slice(0, 8)
        .map(({ value, count }) => [
          html`<a href="${pathTo('/decisions', { ...query, [name]: value, cursor: undefined })}">${value}</a>`,
          numberOf(count),
        ]),
    ),
  )

export function overviewPage(
  summary: Summary | undefined,
  policy: PolicyView | undefined,
  query: Query,
): ConsolePage {
  const isLive = query.live === '1'
  return {
    title: 'Overview',
    at: 'Overview',
    refreshSeconds: isLive ? 10 : undefined,
    content: html`${periodLinks('', query)}
<p><a href="${pathTo('', { ...query, live: isLive ? undefined : '1' })}">${
      isLive ? 'Stop loading every 10 seconds' : 'Load again every 10 seconds'
    }</a></p>
${summary === undefined ? html`<p class="note">${NO_STORE_TEXT}</p>` : decisionsIn(summary, query)}
${policy === undefined ? '' : card('Gateway', gatewayFacts(policy))}`,
  }
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
  const { live: _, ...rest } = query
  return html`<dl class="tiles">${tiles.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
${card('Decisions', html`${chartOf(summary, rest)}${incomplete(summary)}`)}
<div class="grid">${facet('Refusals by reason', 'reason', facets.reason, rest)}${facet('Routes', 'route', facets.route, rest)}</div>`
}

const chartOf = (summary: Summary, query: Query): Markup =>
  decisionChart(summary, (since, until) =>
    pathTo('/decisions', { ...query, since, until, last: undefined, cursor: undefined }),
  )

const gatewayFacts = ({
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

const facts = (rows: readonly (readonly [string, Markup | string])[]): Markup =>
  html`<dl class="facts">${rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`

const FILTERS = ['decision', 'reason', 'route', 'client', 'tenant', 'address', 'status'] as const

export function decisionsPage(
  summary: Summary | undefined,
  page:
    | { readonly events: readonly AuditEvent[]; readonly cursor?: string | undefined }
    | undefined,
  query: Query,
): ConsolePage {
  const shown = {
    title: 'Decisions',
    at: 'Decisions',
  }
  if (summary === undefined || page === undefined)
    return { ...shown, content: html`<p class="note">${NO_STORE_TEXT}</p>` }
  const { facets } = summary
  return {
    ...shown,
    content: html`${periodLinks('/decisions', query)}
${card('When', html`${chartOf(summary, query)}${incomplete(summary)}`)}
${card('Search', filterForm(query))}
${card(
  'Events',
  html`${eventTable(page.events)}${
    page.cursor === undefined
      ? ''
      : html`<p><a href="${pathTo('/decisions', { ...query, cursor: page.cursor })}">Older events</a></p>`
  }`,
)}
<div class="grid">${facet('Reasons of refusals', 'reason', facets.reason, query)}${facet('Routes', 'route', facets.route, query)}${facet(
      'Subjects',
      'q',
      facets.subject,
      query,
    )}${facet('Clients', 'client', facets.client, query)}${facet('Tenants', 'tenant', facets.tenant, query)}${facet(
      'Addresses',
      'address',
      facets.address,
      query,
    )}</div>`,
  }
}

function filterForm(query: Query): Markup {
  const kept = ['last', 'since', 'until'].map((name) =>
    query[name] === undefined
      ? ''
      : html`<input type="hidden" name="${name}" value="${query[name] ?? ''}">`,
  )
  return html`<form class="filter" method="get" action="${pathTo('/decisions')}">${kept}
<div><label for="q">Subject or request id</label><input id="q" name="q" value="${query.q ?? ''}"></div>
${FILTERS.map((name) =>
  name === 'decision'
    ? html`<div><label for="decision">Decision</label><select id="decision" name="decision">${[
        '',
        'allow',
        'deny',
        'error',
      ].map((value) =>
        value === (query.decision ?? '')
          ? html`<option value="${value}" selected>${value || 'any'}</option>`
          : html`<option value="${value}">${value || 'any'}</option>`,
      )}</select></div>`
    : html`<div><label for="${name}">${name}</label><input id="${name}" name="${name}" value="${query[name] ?? ''}"></div>`,
)}
<div><button>Search</button></div></form>
<p><a href="${pathTo('/decisions', { last: query.last })}">Clear all filters</a></p>`
}

const DECISION_WORDS = { allow: 'allowed', deny: 'refused', error: 'failed' } as const

export const eventTable = (events: readonly AuditEvent[]): Markup =>
  table(
    'Events',
    ['Time (UTC)', 'Decision', 'Status', 'Route', 'Reason', 'Caller', 'Address'],
    events.map(({ time, requestId, decision, status, method, route, reason, actor, address }) => [
      html`<a href="${pathTo(`/decisions/${encodeURIComponent(requestId)}`)}">${when(time)}</a>`,
      html`<span class="tag ${decision}">${DECISION_WORDS[decision]}</span>`,
      status,
      `${method} ${route ?? '(no route)'}`,
      reason,
      callerLink(actor),
      html`<a href="${pathTo('/callers', { kind: 'address', value: address })}">${address}</a>`,
    ]),
    'No event matches.',
  )

function callerLink({ subject, client, key }: AuditEvent['actor']): Markup | string {
  if (subject !== null)
    return html`<a href="${pathTo('/callers', { kind: 'subject', value: subject })}">${subject}</a>`
  if (key !== undefined)
    return html`<a href="${pathTo('/callers', { kind: 'key', value: key })}">${key}</a>`
  if (client !== null)
    return html`<a href="${pathTo('/callers', { kind: 'client', value: client })}">${client}</a>`
  return 'anonymous'
}

export function eventPage(events: readonly AuditEvent[], requestId: string): ConsolePage {
  return {
    title: `Request ${requestId}`,
    at: 'Decisions',
    content:
      events.length === 0
        ? html`<p class="note">No event of this request is stored. Events arrive a second or two after the decision.</p>`
        : html`${events.map((event) => eventCard(event))}`,
  }
}

function eventCard(event: AuditEvent): Markup {
  const {
    actor,
    decision,
    reason,
    status,
    limits,
    durationsMs,
    change,
    fields = {},
    observed = [],
  } = event
  const { subject, grants, back } = {
    ...event.actor,
    grants: event.grants,
    back: pathTo(`/decisions/${encodeURIComponent(event.requestId)}`),
  }
  const optional = (
    name: string,
    value: string | null | undefined,
  ): (readonly [string, string])[] =>
    value === null || value === undefined || value === '' ? [] : [[name, value]]
  return html`<div class="grid">${card(
    `${DECISION_WORDS[decision]}, ${status}`,
    facts([
      ['Reason', html`<strong class="${decision}">${reason}</strong>`],
      ['Time', html`${when(event.time)} UTC`],
      ['Route', `${event.method} ${event.route ?? '(no route)'}`],
      ...optional('Host', event.host),
      ...optional('Origin', event.origin),
      ['Caller', callerLink(actor)],
      ...optional('Issuer', actor.issuer),
      ...optional('Client', actor.client),
      ...optional('Tenant', actor.tenant),
      [
        'Address',
        html`<a href="${pathTo('/callers', { kind: 'address', value: event.address })}">${event.address}</a>`,
      ],
      ...optional('Roles', grants?.roles.join(', ')),
      ...optional('Scopes', grants?.scopes.join(' ')),
      ...optional('Relation', grants?.relation),
      ...optional('Observed', observed.join(', ')),
      ...optional('Change', change && `${change.action} ${change.target}`),
      ...(event.call ? optional('Tool', `${event.call.method} ${event.call.name ?? ''}`) : []),
      ...(event.rejected
        ? [
            [
              'Credential',
              `found ${event.rejected.seen}, expected ${event.rejected.expected}`,
            ] as const,
          ]
        : []),
      ...Object.entries(fields),
    ]),
  )}${card(
    'Stages',
    html`${table(
      'Stages',
      ['Stage', 'Milliseconds'],
      Object.entries(durationsMs).map(([stage, ms]) => [stage, ms.toFixed(1)]),
    )}${
      limits.length === 0
        ? ''
        : table(
            'Limits',
            ['Limit', 'Remaining'],
            limits.map(({ name, limit, remaining }) => [name, `${remaining} of ${limit}`]),
          )
    }`,
  )}${card(
    'Actions',
    html`${explainForm({
      method: event.method,
      path: event.route ?? '/',
      ...(subject !== null && { subject }),
      ...(actor.issuer !== null && { issuer: actor.issuer }),
      ...(actor.tenant !== null && { tenant: actor.tenant }),
      roles: grants?.roles.join(' ') ?? '',
    })}${subject === null ? '' : callerActions('subject', subject, back)}`,
  )}</div>`
}

export const explainForm = (query: Query): Markup => html`<details><summary>Explain now</summary>
<form method="post" action="${pathTo('/explain')}">
${(
  [
    ['method', 'Method'],
    ['path', 'Path, with real values for the parameters'],
    ['subject', 'Subject'],
    ['issuer', 'Issuer'],
    ['tenant', 'Tenant'],
    ['roles', 'Roles, separated by spaces'],
  ] as const
).map(
  ([name, label]) =>
    html`<div><label for="explain-${name}">${label}</label><input id="explain-${name}" name="${name}" value="${query[name] ?? ''}"></div>`,
)}
<button>Explain</button></form></details>`

export interface Explanation {
  readonly decision: string
  readonly status: number
  readonly reason: string
  readonly stages: readonly {
    readonly stage: string
    readonly outcome: string
    readonly why: string
  }[]
}

export const explanationPage = (explained: Explanation, query: Query): ConsolePage => ({
  title: `${query.method ?? ''} ${query.path ?? ''}`,
  at: 'Decisions',
  content: html`<p>A request of this caller would now be decided so. It was not sent, and nothing was counted.</p>
${card(
  `${explained.decision}, ${explained.status}`,
  table(
    'Stages',
    ['Stage', 'Outcome', 'Why'],
    explained.stages.map(({ stage, outcome, why }) => [stage, outcome, why]),
  ),
)}${card('Another request', explainForm(query))}`,
})

/** The matrix of roles and routes. */
export const policyPage = (policy: PolicyView): ConsolePage => ({
  title: 'Policy',
  at: 'Policy',
  content: html`${card(
    'Who may call which route',
    table(
      'Roles and routes',
      ['Route', 'Permission', ...policy.roles.map(({ name }) => name), 'Limits'],
      policy.routes.map(({ method, host, path, permission, roles, limits }) => [
        `${method} ${host ?? ''}${path}`,
        permission ?? 'anonymous',
        ...policy.roles.map(({ name }) =>
          permission === null || roles.includes(name)
            ? html`<span class="mark allow">yes</span>`
            : '-',
        ),
        limits.join(', '),
      ]),
    ),
  )}<div class="grid">${card(
    'Limits',
    table(
      'Limits',
      ['Limit', 'Requests', 'Seconds'],
      policy.limits.map(({ name, limit, windowSeconds }) => [name, numberOf(limit), windowSeconds]),
    ),
  )}${card('Gateway', gatewayFacts(policy))}${card('Explain a request', explainForm({}))}</div>`,
})
