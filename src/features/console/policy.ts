/** The page of the policy. */
import { html } from 'hono/html'
import { Denied } from '../../errors.ts'
import { POLICY_PERMISSION, type PolicyView, policyView } from './calls.ts'
import { explainForm } from './explain.ts'
import { type ConsolePage, table } from './layout.ts'
import { gatewayFacts } from './overview.ts'
import type { PageDefinition } from './page.ts'
import { card, numberOf } from './parts.ts'

export const POLICY: PageDefinition = {
  path: '/policy',
  id: 'policy',
  name: 'Policy',
  async show(desk) {
    const shown = await desk.read('readPolicy', policyView)
    if (shown === undefined)
      throw new Denied({ code: 'permission_missing', permission: POLICY_PERMISSION })
    return policyPage(shown)
  },
}

/** The matrix of roles and routes. */
const policyPage = (policy: PolicyView): ConsolePage => ({
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
