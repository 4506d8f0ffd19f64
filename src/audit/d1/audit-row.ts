/** Converts audit events to rows of D1 and back. */
import type { ChainRow, ChainValue } from '../chain-row.ts'
import type { AuditEvent } from '../event.ts'

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
  /** JSON; undefined in a database that does not have the column yet. */
  readonly change: string | null | undefined
  /** JSON; undefined in a database that does not have the column yet. */
  readonly observed: string | null | undefined
}

/** Names of the columns that hold an event. */
const COLUMNS = [
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
  'observed',
] as const satisfies readonly (keyof AuditRow)[]

/** Names of all columns of a row in the chain, including its place and its commitments. */
export const CHAIN_COLUMNS = [
  ...COLUMNS,
  ...['salt', 'commitment', 'change_salt', 'change_commitment'],
  ...['v', 'partition', 'seq', 'previous_hash', 'hash'],
]

/**
 * Returns a value that SQLite stores unchanged: without lone surrogates and NUL. Otherwise the row
 * that is read back would differ from the row that was hashed.
 */
export const storable = (value: ChainValue): ChainValue =>
  typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\ufffd') : value

/** Returns the columns of an event's row, before it has a place in the chain. */
export const rowOf = (event: AuditEvent): ChainRow => {
  const row: Record<(typeof COLUMNS)[number], ChainValue> = {
    id: event.id,
    time_ms: Date.parse(event.time),
    request_id: event.requestId,
    trace_id: event.traceId,
    issuer: event.actor.issuer,
    subject: event.actor.subject,
    client: event.actor.client,
    tenant: event.actor.tenant,
    token_id_hash: event.actor.tokenIdHash,
    method: event.method,
    route: event.route,
    decision: event.decision,
    reason: event.reason,
    status: event.status,
    limits: JSON.stringify(event.limits),
    durations_ms: JSON.stringify(event.durationsMs),
    address: event.address,
    colo: event.colo,
    lost: event.lost ?? null,
    change: event.change === undefined ? null : JSON.stringify(event.change),
    observed: event.observed === undefined ? null : JSON.stringify(event.observed),
  }
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, storable(value)]))
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
  ...(row.lost === null ? {} : { lost: row.lost }),
})
