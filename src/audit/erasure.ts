/** Forgetting somebody in the audit trail: who is meant, and which events are about them. */
import { idsInChange, subjectOfId } from '../relations/tuple-change.ts'
import { sha256 } from '../tokens/sha256.ts'
import type { AuditChange, AuditEvent } from './event.ts'
import { NO_TRACE_ID } from './lost.ts'
import { ERASED_ADDRESS } from './personal.ts'

/** Somebody, by who vouches for them. */
export interface Person {
  readonly issuer: string
  readonly subject: string
}

/** How far an erasure is. `rows`: of the chain, where they were erased in D1 or in its export. */
export interface Erasure {
  /** UUIDv7; what the audit trail says instead of the subject. */
  readonly id: string
  readonly state: 'pending' | 'running' | 'done'
  /** Milliseconds since the epoch. What was decided until then is erased. */
  readonly orderedMs: number
  readonly rows: number
}

/** Port: orders of erasure. Each call rejects with `Unavailable`. */
export interface AuditErasures {
  /** Keeps the order; the audit Worker carries it out. Events that are on their way are covered. */
  order(person: Person): Promise<Erasure>
  /** Undefined: there is no such erasure. */
  find(id: string): Promise<Erasure | undefined>
}

/**
 * How the actions begin whose targets can be somebody: clients, which are the subjects of their own
 * tokens, and limits (`limit:subject`). All others are about ids; if these could be erased, so could what
 * an operator did, and what the trail says of erasures.
 */
export const PERSONAL_ACTIONS = ['client.', 'limit.'] as const

/** How the actions begin whose targets are relation tuples, in which anybody can be named. */
export const TUPLE_ACTIONS = 'relations.'

/** Whether what an operator changed is named by a subject. Says nothing of who vouches for it. */
export const isAbout = (change: AuditChange, subject: string): boolean =>
  namesIn(change).includes(subject)

/** The event without whoever asked. */
const withoutCaller = (event: AuditEvent): AuditEvent => ({
  ...event,
  requestId: '',
  traceId: NO_TRACE_ID,
  actor: { issuer: null, subject: null, client: null, tenant: null, tokenIdHash: null },
  address: ERASED_ADDRESS,
})

function withoutChange({ change: _, ...event }: AuditEvent): AuditEvent {
  return event
}

/** The event without what it says of somebody; itself where that is nothing. */
export function forgetting(event: AuditEvent, { issuer, subject }: Person): AuditEvent {
  const { actor, change } = event
  const others = actor.issuer === issuer && actor.subject === subject ? withoutCaller(event) : event
  return change !== undefined && isAbout(change, subject) ? withoutChange(others) : others
}

/** Somebody who was forgotten and may still be in events that come late. No subject is in it. */
export interface Forgotten {
  readonly salt: string
  readonly caller_digest: string
  readonly name_digest: string
  /** Milliseconds since the epoch: what was decided later is no part of it. */
  readonly ordered_ms: number
}

/** What recognises somebody without naming them: salted hashes, of both names and of the subject. */
export const callerDigest = (salt: string, issuer: string, subject: string): Promise<string> =>
  sha256(`${salt}\n${JSON.stringify([issuer, subject])}`)
export const nameDigest = (salt: string, subject: string): Promise<string> =>
  sha256(`${salt}\n${JSON.stringify([subject])}`)

/** As {@link forgetting}, for an event that arrives when nobody knows the subject any more. */
export async function forgettingLate(
  event: AuditEvent,
  forgotten: readonly Forgotten[],
): Promise<AuditEvent> {
  let left = event
  const { actor, change } = event
  for (const { salt, caller_digest, name_digest, ordered_ms } of forgotten) {
    if (Date.parse(event.time) > ordered_ms) continue
    if (actor.issuer !== null && actor.subject !== null) {
      const digest = await callerDigest(salt, actor.issuer, actor.subject)
      if (digest === caller_digest) left = withoutCaller(left)
    }
    for (const name of change === undefined ? [] : namesIn(change))
      if ((await nameDigest(salt, name)) === name_digest) left = withoutChange(left)
  }
  return left
}

/** Everybody whom a change names. */
function namesIn({ action, target }: AuditChange): readonly string[] {
  if (action.startsWith(TUPLE_ACTIONS))
    return [...idsInChange(target)].flatMap((id) => subjectOfId(id) ?? [])
  if (!PERSONAL_ACTIONS.some((beginning) => action.startsWith(beginning))) return []
  const names = [target]
  for (let colon = target.indexOf(':'); colon !== -1; colon = target.indexOf(':', colon + 1))
    names.push(target.slice(colon + 1))
  return names
}

/** The reason of the event that ends an erasure, before a colon and the number of rows. */
export const ERASED_REASON = 'audit_erased'

/** What the audit Worker says of an erasure, in the chain: that it began, and what came of it. */
export function erasureEvent(
  { id, end_id }: { readonly id: string; readonly end_id: string },
  nowMs: number,
  rows?: number,
): AuditEvent {
  const began = rows === undefined
  return {
    id: began ? id : end_id,
    time: new Date(nowMs).toISOString(),
    requestId: id,
    traceId: NO_TRACE_ID,
    actor: { issuer: null, subject: null, client: null, tenant: null, tokenIdHash: null },
    method: '',
    route: null,
    decision: 'allow',
    reason: began ? 'audit_erasure' : `${ERASED_REASON}:${rows}`,
    status: 0,
    limits: [],
    durationsMs: {},
    address: 'unknown',
    colo: null,
    change: { action: began ? 'audit.erasure-begun' : 'audit.erasure-done', target: id },
  }
}
