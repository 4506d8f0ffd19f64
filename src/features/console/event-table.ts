/** The table of audit events. */
import { html } from 'hono/html'
import { type CommandGroup, groupCommands } from '../../audit/command-events.ts'
import type { AuditEvent } from '../../audit/event.ts'
import { type Markup, pathTo, table, when } from './layout.ts'

export const DECISION_WORDS = { allow: 'allowed', deny: 'refused', error: 'failed' } as const

/** Lists events. A command of an operator is one row; with `isWhole`, each event is. */
export const eventTable = (
  events: readonly AuditEvent[],
  isWhole = false,
  ofNone = 'No event matches.',
): Markup =>
  table(
    'Events',
    ['Time (UTC)', 'Decision', 'Status', 'Route', 'Reason', 'Caller', 'Address'],
    (isWhole ? events.map((event) => ({ event, others: 0 })) : groupCommands(events)).map(eventRow),
    ofNone,
  )

/** Says in which part of the trail no event matches. */
export const noneSince = (since: string, until?: string): string =>
  `No event matches ${until === undefined ? `since ${since}` : `between ${since} and ${until}`}.`

const eventRow = ({ event, others }: CommandGroup<AuditEvent>) => {
  const { time, requestId, decision, status, method, route, reason, actor, address } = event
  return [
    html`<a href="${pathTo(`/decisions/${encodeURIComponent(requestId)}`)}">${when(time)}</a>`,
    html`<span class="tag ${decision}">${DECISION_WORDS[decision]}</span>`,
    status,
    `${method} ${route ?? '(no route)'}`,
    withOthers(reason, others),
    callerLink(actor),
    html`<a href="${pathTo('/callers', { kind: 'address', value: address })}">${address}</a>`,
  ]
}

/** Returns the reason, and how many more events belong to the same command. */
export const withOthers = (reason: string, others: number): string =>
  others === 0 ? reason : `${reason} (+${others} of this command)`

/** Returns how the page of callers finds the caller of an event. Undefined: it is anonymous. */
export function callerOfEvent({ subject, client, key }: AuditEvent['actor']) {
  if (subject !== null) return { kind: 'subject', value: subject }
  if (key !== undefined) return { kind: 'key', value: key }
  return client === null ? undefined : { kind: 'client', value: client }
}

export function callerLink(actor: AuditEvent['actor']): Markup | string {
  const caller = callerOfEvent(actor)
  if (caller === undefined) return 'anonymous'
  return html`<a href="${pathTo('/callers', caller)}">${caller.value}</a>`
}
