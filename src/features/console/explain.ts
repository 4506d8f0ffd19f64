/** Explains how the gateway would decide a request now. */
import { html } from 'hono/html'
import * as z from 'zod/mini'
import { type ConsolePage, type Markup, pathTo, table } from './layout.ts'
import { card } from './markup.ts'
import type { PageDefinition, Query } from './page.ts'

const explanation = z.object({
  decision: z.string(),
  status: z.number(),
  reason: z.string(),
  stages: z.array(z.object({ stage: z.string(), outcome: z.string(), why: z.string() })),
})
type Explanation = z.infer<typeof explanation>

export const EXPLAIN: PageDefinition = {
  method: 'POST',
  path: '/explain',
  id: 'explain',
  async show(desk) {
    const form = Object.fromEntries([...(await desk.form())].filter(([, value]) => value !== ''))
    const { method, path, subject, issuer, tenant, roles } = form
    const caller = subject !== undefined && {
      caller: {
        subject,
        ...(issuer !== undefined && { issuer }),
        ...(tenant !== undefined && { tenant }),
        roles: roles?.split(/\s+/) ?? [],
      },
    }
    const explained = await desk.act('explainRequest', { body: { method, path, ...caller } })
    return explanationPage(z.parse(explanation, explained), form)
  },
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

const explanationPage = (explained: Explanation, query: Query): ConsolePage => ({
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
