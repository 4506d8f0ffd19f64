/** The audit event of one decision (OWASP ASVS 16.2). */

import type * as z from 'zod/mini'
import type { WaitUntil } from '../isolate/after-response.ts'
import type { auditEventSchema } from './event-schema.ts'

export type AuditEvent = z.infer<typeof auditEventSchema>
export type AuditCall = NonNullable<AuditEvent['call']>
export type AuditChange = NonNullable<AuditEvent['change']>
export type AuditGrants = NonNullable<AuditEvent['grants']>
export type AuditDecision = AuditEvent['decision']

/** What searches, counts and erasures read of an event. */
export type CountedEvent = Pick<
  AuditEvent,
  | ('id' | 'time' | 'requestId' | 'actor' | 'method' | 'route' | 'host' | 'origin' | 'decision')
  | ('reason' | 'status' | 'durationsMs' | 'address' | 'observed' | 'call' | 'change')
>

/** Port: records an event and delivers it at least once, in `waitUntil`. Never throws. */
export interface AuditSink {
  /** Returns a promise, which never rejects, if the response should wait until the event is stored. */
  record(event: AuditEvent, waitUntil: WaitUntil): void | Promise<void>
}

/** The invalid trace id of W3C Trace Context, which no real trace can have. */
export const NO_TRACE_ID = '0'.repeat(32)

export const NO_ACTOR: AuditEvent['actor'] = {
  issuer: null,
  subject: null,
  client: null,
  tenant: null,
  tokenIdHash: null,
}

/** Creates an event that belongs to no request: status 0, no actor. */
export const eventWithoutRequest = (
  nowMs: number,
  fields: Pick<
    AuditEvent,
    'id' | 'requestId' | 'decision' | 'reason' | 'change' | 'fields' | 'lost'
  >,
): AuditEvent => ({
  ...fields,
  time: new Date(nowMs).toISOString(),
  traceId: NO_TRACE_ID,
  actor: NO_ACTOR,
  method: '',
  route: null,
  status: 0,
  limits: [],
  durationsMs: {},
  address: 'unknown',
  colo: null,
})

/** `lost` is an upper bound, because an attempt without a response may have succeeded. */
export const lostEvent = (lost: number, id: string, nowMs: number): AuditEvent =>
  eventWithoutRequest(nowMs, { id, requestId: id, decision: 'error', reason: 'audit_lost', lost })
