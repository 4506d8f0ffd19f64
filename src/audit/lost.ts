/** The audit event that reports lost events. */
import type { AuditEvent } from './event.ts'

/** The invalid trace id of W3C Trace Context, which no real trace can have. */
export const NO_TRACE_ID = '0'.repeat(32)

/**
 * Creates the event that reports that up to `lost` events were not delivered. The number is an
 * upper bound, because an attempt without a response may have succeeded. The event belongs to no
 * request: status 0, no actor, its own id.
 */
export const lostEvent = (lost: number, id: string, nowMs: number): AuditEvent => ({
  id,
  time: new Date(nowMs).toISOString(),
  requestId: id,
  traceId: NO_TRACE_ID,
  actor: { issuer: null, subject: null, client: null, tenant: null, tokenIdHash: null },
  method: '',
  route: null,
  decision: 'error',
  reason: 'audit_lost',
  status: 0,
  limits: [],
  durationsMs: {},
  address: 'unknown',
  colo: null,
  lost,
})
