/** The actions on a caller. */
import { html } from 'hono/html'
import { actionForm } from './action-forms.ts'
import type { CallerKind, CallerView } from './calls.ts'
import type { Markup } from './layout.ts'
import { numberOf } from './markup.ts'

/** Renders the forms. `limits` are those of the policy that count this kind of caller. Null: the visitor names one. */
export function callerActions(
  kind: CallerKind,
  value: string,
  back: string,
  limits: CallerView['limits'] = null,
  overrides: CallerView['overrides'] = [],
): Markup {
  // The record is of the caller in every tenant.
  const given = { kind, value, tenant: '' }
  const ban = actionForm({ action: 'createBan', label: `Ban this ${kind}`, back, given })
  if (kind === 'address') return ban
  const revoke =
    kind === 'key'
      ? actionForm({ action: 'disableApiKey', back, given: { id: value }, about: value })
      : actionForm({
          action: 'createRevocation',
          label: `Revoke this ${kind} everywhere`,
          back,
          given,
          note: laterNote(kind),
        })
  const raise = actionForm({
    action: 'createLimitOverride',
    label: 'Set a limit of its own',
    back,
    given: { value, tenant: '' },
    choices: { limits: limits ?? undefined },
    note: replacedNote(overrides),
  })
  return html`${revoke}${kind === 'subject' ? ban : ''}${
    limits?.length === 0
      ? html`<p class="note">No limit of the policy counts a ${kind}.</p>`
      : raise
  }`
}

/** Only subjects can be banned. */
const laterNote = (kind: CallerKind): Markup =>
  html`<p class="note">It ends what was issued until now. What is issued later is accepted${
    kind === 'subject' ? ': ban the subject to stop that too' : ''
  }.</p>`

const replacedNote = (overrides: CallerView['overrides']): Markup | '' =>
  overrides.length === 0
    ? ''
    : html`<p class="note">It replaces the number that the caller has of the same limit: ${overrides
        .map(({ limit, requests }) => `${limit} ${numberOf(requests)}`)
        .join(', ')}.</p>`
