/** Parts of pages that show a summary of decisions. */
import { html } from 'hono/html'
import type { Summary } from '../../audit/summary.ts'
import { decisionChart } from './chart.ts'
import { type Markup, pathTo, table, when } from './layout.ts'
import { card, numberOf } from './markup.ts'
import type { Query } from './page.ts'

/** Says of which period and from where counts are. */
export const countedIn = ({ since, countedSince, until }: Summary): Markup =>
  html`Decisions from ${when(countedSince > since ? countedSince : since)} to ${when(until)} UTC, counted from the events in the audit database.`

export const incomplete = ({ since, countedSince }: Summary): Markup | '' =>
  countedSince > since
    ? html`<p class="note">The period has more events than a summary with these filters reads: the counts begin at ${when(countedSince)} UTC.</p>`
    : ''

/** Says since when callers are counted, if it is later than the rest. */
export const callersIn = ({ countedSince, callersSince }: Summary): Markup | '' =>
  callersSince > countedSince
    ? html`<p class="note">Subjects, clients, tenants and addresses are counted since ${when(callersSince)} UTC.</p>`
    : ''

export const facet = (
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

export const chartOf = (summary: Summary, query: Query): Markup =>
  decisionChart(summary, (since, until) =>
    pathTo('/decisions', { ...query, since, until, last: undefined, cursor: undefined }),
  )
