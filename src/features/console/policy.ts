/** The page of the policy. */
import { html } from 'hono/html'
import type * as z from 'zod/mini'
import { POLICY_PERMISSION } from './calls.ts'
import { explainForm } from './explain.ts'
import { type ConsolePage, type Markup, table, when } from './layout.ts'
import { card, numberOf } from './markup.ts'
import { unreadable } from './mistakes.ts'
import { gatewayFacts } from './overview.ts'
import type { PageDefinition } from './page.ts'
import { policyChangesView } from './policy-history.ts'
import { type PolicyView, policyView } from './policy-view.ts'

export const POLICY: PageDefinition = {
  path: '/policy',
  id: 'policy',
  name: 'Policy',
  needs: ['readPolicy'],
  isOfPlatform: true,
  async show(desk) {
    const shown = await desk.read('readPolicy', policyView)
    if (shown === undefined) throw unreadable(desk, 'readPolicy', POLICY_PERMISSION)
    const history = await desk.read('readPolicyChanges', policyChangesView)
    return policyPage(shown, history?.changes ?? [])
  },
}

type Changes = z.infer<typeof policyChangesView>['changes']

const changesOf = (changes: Changes): Markup | string =>
  changes.length === 0
    ? 'No gateway on this Redis has used another policy.'
    : html`${changes
        .slice(0, 10)
        .map(
          ({ at, by, differences }) =>
            html`<details><summary>${when(at)} UTC, ${differences.length} differences, by ${by ?? 'an unknown person'}</summary><ul>${differences
              .slice(0, 200)
              .map((each) => html`<li>${each}</li>`)}</ul></details>`,
        )}`

/** The matrix of roles and routes. */
const policyPage = (policy: PolicyView, changes: Changes): ConsolePage => ({
  title: 'Policy',
  at: 'Policy',
  content: html`${card('Last changes', changesOf(changes))}${card(
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
  )}${card('Gateway', gatewayFacts(policy))}${card('Explain a request', explainForm({}, { roles: policy.roles.map(({ name }) => name), issuers: policy.issuers }))}</div>`,
})
