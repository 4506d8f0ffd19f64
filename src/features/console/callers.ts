/** The page of a caller: what is known of it, and its switches. */
import { html } from 'hono/html'
import { banEnd, overrideEnd, revocationEnd } from './action-forms.ts'
import { callerActions } from './caller-actions.ts'
import { type CallerView, callerView, KINDS } from './calls.ts'
import { eventTable, noneSince } from './event-table.ts'
import { type ConsolePage, pathTo, table, when } from './layout.ts'
import { endOf, windowOf } from './limits.ts'
import { authorOf, card, NO_STORE_TEXT, numberOf } from './markup.ts'
import type { PageDefinition, Query } from './page.ts'

export const CALLERS: PageDefinition = {
  path: '/callers',
  id: 'callers',
  name: 'Callers',
  needs: ['readCaller'],
  async show({ query, read }) {
    const { kind = 'subject', value } = query
    if (value?.startsWith('pk_')) return secretInUrl
    const caller =
      value === undefined
        ? undefined
        : await read('readCaller', callerView, { query: { kind, value } })
    return callerPage(caller, query)
  },
}

/** The secret is not repeated. */
const secretInUrl: ConsolePage = {
  title: 'This is the secret of an API key',
  at: 'Callers',
  content: html`<p>It is now in the history of this browser: rotate the key. <a href="${pathTo('/api-keys')}">API keys</a> finds a key by its secret.</p>`,
}

function callerPage(caller: CallerView | undefined, query: Query): ConsolePage {
  const { kind = 'subject', value = '' } = query
  const search = html`<form class="filter" method="get" action="${pathTo('/callers')}">
<div><label for="kind">Kind</label><select id="kind" name="kind">${KINDS.map((one) =>
    one === kind
      ? html`<option value="${one}" selected>${one}</option>`
      : html`<option value="${one}">${one}</option>`,
  )}</select></div>
<div><label for="value">Value</label><input id="value" name="value" value="${value}" required></div>
<div><button>Show</button></div></form>`
  const title = value === '' ? 'Callers' : `${kind} ${value}`
  if (caller === undefined)
    return {
      title,
      at: 'Callers',
      content: html`${card('Find a caller', search)}${
        value === '' ? '' : html`<p class="note">Your role lacks portcullis:callers:read.</p>`
      }`,
    }
  const back = pathTo('/callers', { kind, value })
  return {
    title,
    at: 'Callers',
    content: html`${
      caller.isComplete
        ? ''
        : html`<p class="note">Not all records are shown: a list has too many, or you lack the permission of a list.</p>`
    }<div class="grid">
${card(
  'Bans',
  table(
    'Bans',
    ['Until (UTC)', 'Reason', 'By', ''],
    caller.bans.map((ban) => [
      when(ban.expiresAt),
      ban.reason ?? '',
      authorOf(ban),
      banEnd(ban, back),
    ]),
  ),
)}${card(
  'Revocations',
  table(
    'Revocations',
    ['Since (UTC)', 'Reason', 'By', ''],
    caller.revocations.map((each) => [
      when(each.createdAt),
      each.reason ?? '',
      authorOf(each),
      revocationEnd(each, back),
    ]),
  ),
)}${card(
  'Limits of its own',
  table(
    'Overrides',
    ['Since (UTC)', 'Limit', 'Requests', 'Window', 'Until (UTC)', 'Reason', 'By', ''],
    caller.overrides.map((each) => [
      when(each.createdAt),
      each.limit,
      numberOf(each.requests),
      windowOf(caller.limits ?? [], each.limit),
      endOf(each.expiresAt),
      each.reason ?? '',
      authorOf(each),
      overrideEnd(each, back),
    ]),
  ),
)}${card(
  'API keys',
  table(
    'API keys',
    ['Created (UTC)', 'Name', 'Id'],
    caller.keys.map((key) => [
      when(key.createdAt),
      key.isRevoked ? `${key.name} (revoked)` : key.name,
      html`<a href="${pathTo('/callers', { kind: 'key', value: key.id })}">${key.id}</a>`,
    ]),
  ),
)}${
  caller.sessions === null
    ? ''
    : card(
        'Browser sessions',
        table(
          'Browser sessions',
          ['Since (UTC)', 'Browser', 'Place', 'Issuer'],
          caller.sessions.map(({ createdAt, userAgent, city, country, issuer }) => [
            when(createdAt),
            userAgent ?? 'unknown',
            [city, country].filter((part) => part !== null).join(', ') || 'unknown',
            issuer,
          ]),
        ),
      )
}${card('Actions', callerActions(caller.kind, caller.value, back, caller.limits, caller.overrides))}</div>
${card(
  'Newest decisions',
  caller.events === null
    ? NO_STORE_TEXT
    : eventTable(
        caller.events,
        false,
        caller.eventsSince === null ? undefined : noneSince(caller.eventsSince),
      ),
)}
${card('Find another caller', search)}`,
  }
}
