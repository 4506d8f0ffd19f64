/** The pages of decisions. */
import { html } from 'hono/html'
import type { AuditEvent } from '../../audit/event.ts'
import { STREAM_ENDED } from '../../audit/reason.ts'
import { type Summary, summarySchema } from '../../audit/summary.ts'
import { callerActions } from './caller-actions.ts'
import { choicesOf } from './choices.ts'
import {
  auditPage,
  cursorTime,
  type EventPage,
  filtersOf,
  firstEvents,
  MAIN_FILTERS,
  MORE_FILTERS,
  REQUEST_ID,
} from './decision-query.ts'
import { sentenceOf } from './event-sentence.ts'
import { callerLink, DECISION_WORDS, eventTable, noneSince } from './event-table.ts'
import { explainForm } from './explain.ts'
import { type FormField, filterForm } from './forms.ts'
import {
  CONSOLE_PATH,
  type ConsolePage,
  type Markup,
  pathTo,
  TAIL_PATH,
  table,
  when,
} from './layout.ts'
import { card, facts, NO_STORE_TEXT, periodLinks, streamBox } from './markup.ts'
import type { PageDefinition, Query } from './page.ts'
import { withPeriod } from './period.ts'
import { callersIn, chartOf, countedIn, facet, incomplete } from './summary-parts.ts'

const EVENTS = '50'

export const DECISIONS: readonly PageDefinition[] = [
  {
    path: '/decisions',
    id: 'decisions',
    name: 'Decisions',
    needs: ['queryAudit'],
    async show(desk) {
      const query = withPeriod(desk.query)
      const filters = filtersOf(query, desk.nowMs)
      const [summary, events] = await Promise.all([
        desk.readAudit('summarizeAudit', summarySchema, { query: filters }),
        firstEvents(
          (cursor) =>
            desk.readAudit('queryAudit', auditPage, {
              query: { ...filters, ...(cursor !== undefined && { cursor }), limit: EVENTS },
            }),
          query.cursor,
        ),
      ])
      return decisionsPage(summary, events, query, filters.since ?? '')
    },
  },
  {
    path: '/decisions/:id',
    id: 'event',
    needs: ['queryAudit'],
    async show(desk) {
      const id = desk.param('id')
      const found = REQUEST_ID.test(id)
        ? await desk.readAudit('queryAudit', auditPage, { query: { requestId: id } })
        : undefined
      const { limits } = await choicesOf(desk, 'createLimitOverride')
      return eventPage(found?.events ?? [], id, {
        limits: limits?.filter(({ by }) => by === 'subject') ?? null,
        names: desk.may('explainRequest') ? desk.names : {},
      })
    },
  },
]

/** Says between which times no event matches, if this is not the whole period until now. */
function ofNone(query: Query, since: string, cursor: string | undefined): string | undefined {
  const { until } = query
  const end = query.cursor === undefined ? until && isoTime(until) : cursorTime(query.cursor)
  if (cursor !== undefined) return noneSince(cursorTime(cursor), end)
  const begin = isoTime(since)
  // The period of `last` may have moved past the cursor meanwhile.
  return end !== undefined && begin < end ? noneSince(begin, end) : undefined
}

const isoTime = (time: string): string => new Date(time).toISOString()

/** The tail has its own. */
const NO_TIMES = { last: undefined, since: undefined, until: undefined, cursor: undefined }

function decisionsPage(
  summary: Summary | undefined,
  page: EventPage | undefined,
  query: Query,
  since: string,
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
    stream: TAIL_PATH,
    content: html`${periodLinks('/decisions', query)}
${card('When', html`${chartOf(summary, query)}<p class="note">${countedIn(summary)}</p>${incomplete(summary)}`)}
${card('Search', searchForm(query))}
${card(
  'Events',
  html`${streamBox(pathTo(TAIL_PATH.slice(CONSOLE_PATH.length), { ...query, ...NO_TIMES }))}
<div id="events">${eventTable(page.events, query.route !== undefined, ofNone(query, since, page.cursor))}</div>${
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
    )}</div>
${callersIn(summary)}`,
  }
}

const capitalized = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`

const textField = (name: string, query: Query): FormField => ({
  name,
  label: capitalized(name),
  value: query[name] ?? '',
  isOptional: true,
})

function searchForm(query: Query): Markup {
  const hidden = Object.fromEntries(
    ['last', 'since', 'until'].flatMap((name) =>
      query[name] === undefined ? [] : [[name, query[name]]],
    ),
  )
  const more = MORE_FILTERS.filter((name) => query[name] !== undefined)
  const form = filterForm(
    {
      path: '/decisions',
      label: 'Search',
      fields: [
        { name: 'q', label: 'Subject or request id', value: query.q ?? '', isOptional: true },
        ...[...MAIN_FILTERS, ...more].map((name) => ({
          ...textField(name, query),
          ...(name === 'decision' && { options: ['', 'allow', 'deny', 'error'] }),
        })),
      ],
    },
    hidden,
  )
  return html`${form}<p><a href="${pathTo('/decisions', { last: query.last })}">Clear all filters</a></p>`
}

/** What the forms of an event offer. */
interface Offered {
  readonly limits: Parameters<typeof callerActions>[3]
  readonly names: Parameters<typeof explainForm>[1]
}

function eventPage(
  events: readonly AuditEvent[],
  requestId: string,
  offered: Offered,
): ConsolePage {
  return {
    title: `Request ${requestId}`,
    at: 'Decisions',
    content:
      events.length === 0
        ? html`<p class="note">No event of this request is stored. Events arrive a second or two after the decision.</p>`
        : html`${events.map((event) => eventCard(event, offered))}`,
  }
}

/** The guards that refuse before the origin, with the codes of their refusals. */
const REFUSALS: Readonly<Record<string, readonly string[]>> = {
  throttle: ['rate_limited'],
  authenticate: [
    ...['missing_token', 'token_rejected', 'invalid_dpop_proof', 'use_dpop_nonce'],
    'ambiguous_credentials',
  ],
  // It finds out whether a token that is no JWT is valid.
  admit: ['banned', 'rate_limited', 'token_rejected', 'token_revoked'],
  stepUp: ['insufficient_user_authentication'],
  authorize: ['permission_missing', 'relation_missing', 'relation_unknown'],
  inspect: ['signature_matched'],
}

/**
 * Returns what each stage did. The stages are in the order of their first begin, and the last one need not be the one
 * that refused: a handler or the answer of the origin may have been, or a stage that ran twice. A stage is marked only
 * if the reason is one of its own. Handlers of `/oauth/` refuse for the same reasons as guards.
 */
function resultOf({ decision, reason, route, durationsMs }: AuditEvent): (stage: string) => Markup {
  if (decision === 'allow' || reason.startsWith(STREAM_ENDED)) return () => html`passed`
  const last = Object.keys(durationsMs).at(-1) ?? ''
  const codes = Object.hasOwn(REFUSALS, last) ? REFUSALS[last] : undefined
  const [code = ''] = reason.split(':', 1)
  if (!codes?.includes(code) || route?.startsWith('/oauth/')) return () => html`reached`
  return (stage) =>
    stage === last
      ? html`<span class="tag ${decision}">${DECISION_WORDS[decision]}</span>`
      : html`passed`
}

function eventCard(event: AuditEvent, offered: Offered): Markup {
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
  const linked = (kind: 'client' | 'tenant' | 'address', value: string) =>
    html`<a href="${pathTo('/callers', { kind, value })}">${value}</a>`
  const optional = (
    name: string,
    value: Markup | string | null | undefined,
  ): (readonly [string, Markup | string])[] =>
    value === null || value === undefined || value === '' ? [] : [[name, value]]
  const result = resultOf(event)
  return html`<p class="answer ${decision}">${sentenceOf(event)}</p>
<div class="grid">${card(
    `${DECISION_WORDS[decision]}, ${status}`,
    facts([
      ['Reason', html`<strong class="${decision}">${reason}</strong>`],
      ['Time', html`${when(event.time)} UTC`],
      ['Route', `${event.method} ${event.route ?? '(no route)'}`],
      ...optional('Host', event.host),
      ...optional('Origin', event.origin),
      ['Caller', callerLink(actor)],
      ...optional('Issuer', actor.issuer),
      ...optional('Client', actor.client && linked('client', actor.client)),
      ...optional('Tenant', actor.tenant && linked('tenant', actor.tenant)),
      ['Address', linked('address', event.address)],
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
      ['Stage', 'Result', 'Milliseconds'],
      Object.entries(durationsMs).map(([stage, ms]) => [stage, result(stage), ms.toFixed(1)]),
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
    html`${explainForm(
      {
        method: event.method,
        path: event.route ?? '/',
        ...(subject !== null && { subject }),
        ...(actor.issuer !== null && { issuer: actor.issuer }),
        ...(actor.tenant !== null && { tenant: actor.tenant }),
        roles: grants?.roles.join(' ') ?? '',
      },
      offered.names,
    )}${subject === null ? '' : callerActions('subject', subject, back, offered.limits)}`,
  )}</div>`
}
