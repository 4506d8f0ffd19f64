/** The forms of the console's actions. Each has a reason, and is one operators' call. */
import { html } from 'hono/html'
import type { CallerKind } from './calls.ts'
import { type Markup, pathTo } from './layout.ts'

interface FormField {
  readonly name: string
  readonly label: string
  readonly value?: string
  readonly type?: 'text' | 'number'
}

interface ActionForm {
  /** The id of the operators' call. */
  readonly action: string
  readonly label: string
  /** The page that follows. */
  readonly back: string
  readonly hidden: Readonly<Record<string, string>>
  readonly fields?: readonly FormField[]
}

let lastForm = 0

/** Renders a form that opens in place, so that no single click changes anything. */
export function actionForm({ action, label, back, hidden, fields = [] }: ActionForm): Markup {
  lastForm = (lastForm + 1) % 1_000_000
  const id = `form-${lastForm}`
  const all = [...fields, { name: 'reason', label: 'Reason, for the audit trail', value: '' }]
  return html`<details><summary>${label}</summary>
<form method="post" action="${pathTo('/actions')}">
<input type="hidden" name="action" value="${action}"><input type="hidden" name="back" value="${back}">
${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${all.map(
  (field) =>
    html`<div><label for="${id}-${field.name}">${field.label}</label><input id="${id}-${field.name}" name="${field.name}" type="${
      'type' in field ? (field.type ?? 'text') : 'text'
    }" value="${field.value ?? ''}" maxlength="256" required></div>`,
)}
<button class="danger">${label}</button></form></details>`
}

const SECONDS = { name: 'seconds', label: 'Seconds', value: '3600', type: 'number' } as const

/** Renders the actions on a caller. */
export function callerActions(kind: CallerKind, value: string, back: string): Markup {
  const hidden = { kind, value }
  const ban = actionForm({
    action: 'createBan',
    label: `Ban this ${kind}`,
    back,
    hidden,
    fields: [SECONDS],
  })
  if (kind === 'address') return ban
  const revoked = kind === 'key' ? { kind: 'token', value } : hidden
  const revoke =
    kind === 'key'
      ? actionForm({
          action: 'disableApiKey',
          label: 'Disable this API key',
          back,
          hidden: { id: value },
        })
      : actionForm({
          action: 'createRevocation',
          label: `Revoke this ${kind} everywhere`,
          back,
          hidden: revoked,
        })
  const raise = actionForm({
    action: 'createLimitOverride',
    label: 'Set a limit of its own',
    back,
    hidden: { value },
    fields: [
      { name: 'limit', label: 'Limit of the policy' },
      { name: 'requests', label: 'Requests in each window', type: 'number' },
      { name: 'expiresInSeconds', label: 'Seconds until it ends', value: '86400', type: 'number' },
    ],
  })
  return html`${revoke}${kind === 'subject' ? ban : ''}${raise}`
}
