/** The actions on a caller. */
import { html } from 'hono/html'
import type { CallerKind } from './calls.ts'
import { actionForm } from './forms.ts'
import type { Markup } from './layout.ts'

const SECONDS = { name: 'seconds', label: 'Seconds', value: '3600', type: 'number' } as const

/** Renders the forms. */
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
          hidden,
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
