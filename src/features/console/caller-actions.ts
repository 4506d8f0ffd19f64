/** The actions on a caller. */
import { html } from 'hono/html'
import type { CallerKind, CallerView } from './calls.ts'
import { actionForm } from './forms.ts'
import type { Markup } from './layout.ts'
import { limitChoice } from './limits.ts'

const SECONDS = { name: 'seconds', label: 'Seconds', value: '3600', type: 'number' } as const

/** Renders the forms. `limits` are those of the policy that count this kind of caller. Null: the visitor names one. */
export function callerActions(
  kind: CallerKind,
  value: string,
  back: string,
  limits: CallerView['limits'] = null,
): Markup {
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
      { name: 'limit', label: 'Limit of the policy', ...(limits && limitChoice(limits)) },
      { name: 'requests', label: 'Requests in each window', type: 'number' },
      { name: 'expiresInSeconds', label: 'Seconds until it ends', value: '86400', type: 'number' },
    ],
  })
  return html`${revoke}${kind === 'subject' ? ban : ''}${
    limits?.length === 0
      ? html`<p class="note">No limit of the policy counts a ${kind}.</p>`
      : raise
  }`
}
