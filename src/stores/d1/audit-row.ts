/** An audit event as a row of D1, and back. */
import type { AuditEvent } from '../../audit/event.ts'

/** A row of `audit_events`. */
export interface AuditRow {
  readonly id: string
  readonly time_ms: number
  readonly request_id: string
  readonly trace_id: string
  readonly issuer: string | null
  readonly subject: string | null
  readonly client: string | null
  readonly tenant: string | null
  readonly token_id_hash: string | null
  readonly method: string
  readonly route: string | null
  readonly decision: AuditEvent['decision']
  readonly reason: string
  readonly status: number
  /** JSON. */
  readonly limits: string
  /** JSON. */
  readonly durations_ms: string
  readonly address: string
  readonly colo: string | null
  readonly lost: number | null
  /** JSON; undefined in a database that has not got the column yet. */
  readonly change: string | null | undefined
}

/** Names of the columns, in the order in which {@link valuesOf} gives their values. */
export const COLUMNS = [
  'id',
  'time_ms',
  'request_id',
  'trace_id',
  'issuer',
  'subject',
  'client',
  'tenant',
  'token_id_hash',
  'method',
  'route',
  'decision',
  'reason',
  'status',
  'limits',
  'durations_ms',
  'address',
  'colo',
  'lost',
  'change',
] as const satisfies readonly (keyof AuditRow)[]

/** The values of an event's row. */
export const valuesOf = (event: AuditEvent): readonly (string | number | null)[] => [
  event.id,
  Date.parse(event.time),
  event.requestId,
  event.traceId,
  event.actor.issuer,
  event.actor.subject,
  event.actor.client,
  event.actor.tenant,
  event.actor.tokenIdHash,
  event.method,
  event.route,
  event.decision,
  event.reason,
  event.status,
  JSON.stringify(event.limits),
  JSON.stringify(event.durationsMs),
  event.address,
  event.colo,
  event.lost ?? null,
  event.change === undefined ? null : JSON.stringify(event.change),
]

/** The event that was inserted. Its time comes back in UTC with milliseconds. */
export const eventOfRow = (row: AuditRow): AuditEvent => ({
  id: row.id,
  time: new Date(row.time_ms).toISOString(),
  requestId: row.request_id,
  traceId: row.trace_id,
  actor: {
    issuer: row.issuer,
    subject: row.subject,
    client: row.client,
    tenant: row.tenant,
    tokenIdHash: row.token_id_hash,
  },
  method: row.method,
  route: row.route,
  decision: row.decision,
  reason: row.reason,
  status: row.status,
  limits: JSON.parse(row.limits),
  durationsMs: JSON.parse(row.durations_ms),
  address: row.address,
  colo: row.colo,
  ...(typeof row.change === 'string' && { change: JSON.parse(row.change) }),
  ...(row.lost === null ? {} : { lost: row.lost }),
})
