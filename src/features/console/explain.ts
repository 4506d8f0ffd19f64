/** Explains how the gateway would decide a request now. */
import { html } from 'hono/html'
import * as z from 'zod/mini'
import { namesField, wordsIn } from './action-forms.ts'
import { type FormField, queryForm } from './forms.ts'
import { type ConsolePage, type Markup, pathTo, table, when } from './layout.ts'
import { card } from './markup.ts'
import { questionMistakes, withForm } from './mistakes.ts'
import type { Desk, PageDefinition, Query } from './page.ts'

const explanation = z.object({
  decision: z.string(),
  status: z.number(),
  reason: z.string(),
  stages: z.array(z.object({ stage: z.string(), outcome: z.string(), why: z.string() })),
  revokedBefore: z.array(z.object({ kind: z.string(), until: z.string() })),
})
type Explanation = z.infer<typeof explanation>
type Names = Partial<Pick<Desk['names'], 'roles' | 'issuers'>>

const PATH = '/explain'
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

export const EXPLAIN: PageDefinition = {
  method: 'POST',
  path: PATH,
  id: 'explain',
  async show(desk) {
    const form = await desk.form()
    const values = Object.fromEntries([...form].filter(([, value]) => value !== ''))
    const { method, path, subject, issuer, tenant, address } = values
    const roles = wordsIn(form, 'roles')
    const caller = subject !== undefined && {
      caller: {
        subject,
        ...(issuer !== undefined && { issuer }),
        ...(tenant !== undefined && { tenant }),
        roles,
      },
    }
    const body = { method, path, ...caller, ...(address !== undefined && { address }) }
    const names = desk.may('explainRequest') ? desk.names : {}
    const explained = await withForm(
      () => desk.act('explainRequest', { body }),
      (errors) => ({
        title: 'Not explained',
        at: 'Decisions',
        content: card(
          LABEL,
          questionMistakes({
            path: PATH,
            label: BUTTON,
            fields: fieldsFor({}, names),
            form,
            errors,
          }),
        ),
      }),
    )
    const asked = { ...values, roles: roles.join(' ') }
    return explanationPage(z.parse(explanation, explained), asked, names)
  },
}

const LABEL = 'Explain now'
const BUTTON = 'Explain'

const fieldsFor = (query: Query, { roles, issuers = [] }: Names): readonly FormField[] => {
  const { method = 'GET' } = query
  const optional = (name: string, label: string): FormField => ({
    ...{ name, label, isOptional: true },
    value: query[name] ?? '',
  })
  return [
    { name: 'method', label: 'Method', value: method, options: [...new Set([...METHODS, method])] },
    {
      name: 'path',
      label: 'Path, with real values for the parameters',
      value: query.path ?? '',
    },
    optional('subject', 'Subject'),
    { ...optional('issuer', 'Issuer'), suggestions: issuers },
    optional('tenant', 'Tenant'),
    { ...namesField('roles', 'Roles', roles), value: query.roles ?? '' },
    optional('address', 'Address of the client; empty: one without a ban'),
  ]
}

export const explainForm = (
  query: Query,
  names: Names = {},
): Markup => html`<details><summary>${LABEL}</summary>
${queryForm({ path: PATH, label: BUTTON, fields: fieldsFor(query, names) })}</details>`

/** Says which credentials of the caller are revoked. The stages are those of one that is issued now. */
const revokedCard = ({ revokedBefore }: Explanation, subject: string): Markup =>
  card(
    'Earlier credentials of this caller: refused, 401',
    html`<ul>${revokedBefore.map(
      ({ kind, until }) =>
        html`<li>What was issued until ${when(until)} UTC is revoked: a revocation of its ${kind} covers it.</li>`,
    )}</ul><p>The stages below are of a credential that is issued now. <a href="${pathTo('/callers', { kind: 'subject', value: subject })}">Revocations and bans of ${subject}</a></p>`,
  )

const explanationPage = (explained: Explanation, query: Query, names: Names): ConsolePage => ({
  title: `${query.method ?? ''} ${query.path ?? ''}`,
  at: 'Decisions',
  content: html`<p>A request of this caller would now be decided so. It was not sent, and nothing was counted.</p>
${explained.revokedBefore.length === 0 ? '' : revokedCard(explained, query.subject ?? '')}
${card(
  `${explained.decision}, ${explained.status}: ${explained.reason}`,
  table(
    'Stages',
    ['Stage', 'Outcome', 'Why'],
    explained.stages.map(({ stage, outcome, why }) => [stage, outcome, why]),
  ),
)}${card('Another request', explainForm(query, names))}`,
})
