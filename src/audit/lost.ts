/** The event that tells of events that are missing. */
import type { AuditEvent } from './event.ts'

/** W3C trace context calls this id invalid: nothing can be mistaken for it. */
export const NO_TRACE_ID = '0'.repeat(32)

/**
 * States that up to `lost` events never arrived. An upper bound, because what got no answer at any
 * attempt may have worked all the same. It belongs to no request: status 0, no actor, its own id.
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
