/** Rows of `audit_events`: events of before the chain had blocks. They are read, and never written. */
import type { AuditDecision, AuditEvent } from '../event.ts'

/** Columns of later migrations are undefined in a database that does not have them yet. */
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
  readonly api_key?: string | null
  readonly method: string
  readonly route: string | null
  readonly host?: string | null
  readonly origin?: string | null
  readonly decision: AuditDecision
  readonly reason: string
  readonly status: number
  readonly lost: number | null
  readonly address: string
  readonly colo: string | null
  /** JSON, as are the following ones. */
  readonly limits: string
  readonly durations_ms: string
  readonly change?: string | null
  readonly observed?: string | null
  readonly rejected?: string | null
  readonly call?: string | null
  readonly grants?: string | null
  readonly fields?: string | null
}

/**
 * Returns a value that the database stores unchanged: without lone surrogates and NUL. Otherwise the row
 * that is read back would differ from the row that was hashed.
 */
export function storable<Value>(value: Value): Value | string {
  if (typeof value !== 'string' || (value.isWellFormed() && !value.includes('\0'))) return value
  return value.toWellFormed().replaceAll('\0', '\ufffd')
}

/** Returns the event of a row. Its time is in UTC with milliseconds. */
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
    ...(typeof row.api_key === 'string' && { key: row.api_key }),
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
  ...(typeof row.observed === 'string' && { observed: JSON.parse(row.observed) }),
  ...(typeof row.rejected === 'string' && { rejected: JSON.parse(row.rejected) }),
  ...(typeof row.host === 'string' && { host: row.host }),
  ...(typeof row.origin === 'string' && { origin: row.origin }),
  ...(typeof row.call === 'string' && { call: JSON.parse(row.call) }),
  ...(typeof row.grants === 'string' && { grants: JSON.parse(row.grants) }),
  ...(typeof row.fields === 'string' && { fields: JSON.parse(row.fields) }),
  ...(row.lost === null ? {} : { lost: row.lost }),
})
