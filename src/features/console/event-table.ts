/** The table of audit events. */
import { html } from 'hono/html'
import type { AuditEvent } from '../../audit/event.ts'
import { type Markup, pathTo, table, when } from './layout.ts'

export const DECISION_WORDS = { allow: 'allowed', deny: 'refused', error: 'failed' } as const

export const eventTable = (events: readonly AuditEvent[]): Markup =>
  table(
    'Events',
    ['Time (UTC)', 'Decision', 'Status', 'Route', 'Reason', 'Caller', 'Address'],
    events.map(({ time, requestId, decision, status, method, route, reason, actor, address }) => [
      html`<a href="${pathTo(`/decisions/${encodeURIComponent(requestId)}`)}">${when(time)}</a>`,
      html`<span class="tag ${decision}">${DECISION_WORDS[decision]}</span>`,
      status,
      `${method} ${route ?? '(no route)'}`,
      reason,
      callerLink(actor),
      html`<a href="${pathTo('/callers', { kind: 'address', value: address })}">${address}</a>`,
    ]),
    'No event matches.',
  )

export function callerLink({ subject, client, key }: AuditEvent['actor']): Markup | string {
  if (subject !== null)
    return html`<a href="${pathTo('/callers', { kind: 'subject', value: subject })}">${subject}</a>`
  if (key !== undefined)
    return html`<a href="${pathTo('/callers', { kind: 'key', value: key })}">${key}</a>`
  if (client !== null)
    return html`<a href="${pathTo('/callers', { kind: 'client', value: client })}">${client}</a>`
  return 'anonymous'
}
