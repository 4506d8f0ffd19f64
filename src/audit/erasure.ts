/** Erasure: finds the audit events about a person, and removes the personal data. */

import { idsInChange, subjectOfId } from '../access/relations/tuple-change.ts'
import { sha256 } from '../crypto/sha256.ts'
import {
  type AuditChange,
  type AuditEvent,
  eventWithoutRequest,
  NO_ACTOR,
  NO_TRACE_ID,
} from './event.ts'
import { ERASED_ADDRESS } from './personal.ts'

export interface Person {
  readonly issuer: string
  readonly subject: string
  /** Only events of callers with this tenant. Absent: of every tenant, and of none. */
  readonly tenant?: string | undefined
}

export interface Erasure {
  /** UUIDv7. The audit trail names this id instead of the subject. */
  readonly id: string
  readonly state: 'pending' | 'running' | 'done'
  /** The erasure covers events up to this time. */
  readonly orderedMs: number
  /** Erased rows of the chain, in D1 or in its export. */
  readonly rows: number
  /** As in {@link Person}. */
  readonly tenant?: string | undefined
  /** Absent: the platform has ordered it. */
  readonly owner?: 'tenant' | undefined
}

/**
 * Prefixes of the actions with targets that can name a person: clients, which are the subjects of
 * their own tokens, and limits (`limit:subject`). The targets of all other actions are ids. Those
 * must not be erased: they record what an operator did, and which erasures were made.
 */
export const PERSONAL_ACTIONS = ['client.', 'limit.'] as const

/** Prefix of the actions with relation tuples as targets, which can name any person. */
export const TUPLE_ACTIONS = 'relations.'

/** Reports whether an operator's change names a subject. Does NOT compare the issuer. */
export const isAbout = (change: AuditChange, subject: string): boolean =>
  namesIn(change).includes(subject)

/** Returns the change in a column. One that is no JSON names no person. */
export function changeOf(column: unknown): AuditChange {
  try {
    const { action, target } = JSON.parse(String(column)) as Record<string, unknown>
    return { action: String(action), target: String(target) }
  } catch {
    return { action: '', target: '' }
  }
}

const withoutCaller = ({ grants: _, fields: __, ...event }: AuditEvent): AuditEvent => ({
  ...event,
  requestId: '',
  traceId: NO_TRACE_ID,
  actor: NO_ACTOR,
  address: ERASED_ADDRESS,
})

function withoutChange({ change: _, ...event }: AuditEvent): AuditEvent {
  return event
}

/** Returns the event without the personal data of a person; the same event if it has none. */
export function forgetting(event: AuditEvent, { issuer, subject, tenant }: Person): AuditEvent {
  const { actor, change } = event
  if (tenant !== undefined && actor.tenant !== tenant) return event
  const others = actor.issuer === issuer && actor.subject === subject ? withoutCaller(event) : event
  return change !== undefined && isAbout(change, subject) ? withoutChange(others) : others
}

/** An erased person with events that may still arrive late. It does not contain the subject. */
export interface Forgotten {
  readonly salt: string
  readonly caller_digest: string
  readonly name_digest: string
  /** The erasure does not cover later events. */
  readonly ordered_ms: number
  /** Null: the events of every tenant. */
  readonly tenant: string | null
}

/** Salted hashes that identify a person without naming them. */
export const callerDigest = (salt: string, issuer: string, subject: string): Promise<string> =>
  sha256(`${salt}\n${JSON.stringify([issuer, subject])}`)
export const nameDigest = (salt: string, subject: string): Promise<string> =>
  sha256(`${salt}\n${JSON.stringify([subject])}`)

/** Does what {@link forgetting} does, for an event that arrives after the subject was deleted. */
export async function forgettingLate(
  event: AuditEvent,
  forgotten: readonly Forgotten[],
): Promise<AuditEvent> {
  let left = event
  const { actor, change } = event
  for (const { salt, caller_digest, name_digest, ordered_ms, tenant } of forgotten) {
    if (Date.parse(event.time) > ordered_ms) continue
    if (tenant !== null && actor.tenant !== tenant) continue
    if (actor.issuer !== null && actor.subject !== null) {
      const digest = await callerDigest(salt, actor.issuer, actor.subject)
      if (digest === caller_digest) left = withoutCaller(left)
    }
    for (const name of change === undefined ? [] : namesIn(change))
      if ((await nameDigest(salt, name)) === name_digest) left = withoutChange(left)
  }
  return left
}

/** Returns the subjects that a change may name. */
function namesIn({ action, target }: AuditChange): readonly string[] {
  if (action.startsWith(TUPLE_ACTIONS))
    return [...idsInChange(target)].flatMap((id) => subjectOfId(id) ?? [])
  if (!PERSONAL_ACTIONS.some((beginning) => action.startsWith(beginning))) return []
  const names = [target]
  for (let colon = target.indexOf(':'); colon !== -1; colon = target.indexOf(':', colon + 1))
    names.push(target.slice(colon + 1))
  return names
}

/** Creates the event for the start of an erasure, or for its end if `rows` is given. */
export function erasureEvent(
  { id, end_id }: { readonly id: string; readonly end_id: string },
  nowMs: number,
  rows?: number,
): AuditEvent {
  const isBegin = rows === undefined
  return eventWithoutRequest(nowMs, {
    id: isBegin ? id : end_id,
    requestId: id,
    decision: 'allow',
    reason: isBegin ? 'audit_erasure' : `audit_erased:${rows}`,
    change: { action: isBegin ? 'audit.erasure-begun' : 'audit.erasure-done', target: id },
  })
}
