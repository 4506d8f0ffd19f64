/** Converts audit events to rows of D1 and back. */
import type { ChainRow } from '../chain-row.ts'
import { type AuditEvent, lostEvent } from '../event.ts'

/** Returns the columns of an event. */
const columnsOf = (event: AuditEvent) => ({
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
  change: event.change && JSON.stringify(event.change),
  observed: event.observed && JSON.stringify(event.observed),
  rejected: event.rejected && JSON.stringify(event.rejected),
  host: event.host,
  origin: event.origin,
  call: event.call && JSON.stringify(event.call),
  api_key: event.actor.key,
  grants: event.grants && JSON.stringify(event.grants),
  fields: event.fields && JSON.stringify(event.fields),
})

/** Columns of later migrations are undefined in a database that does not have them yet. */
export type AuditRow = ReturnType<typeof columnsOf>

/** Names of all columns of a row in the chain: of any event, its commitments, and its place. */
export const CHAIN_COLUMNS: readonly string[] = [
  ...Object.keys(columnsOf(lostEvent(1, '', 0))),
  ...['salt', 'commitment', 'change_salt', 'change_commitment'],
  ...['v', 'partition', 'seq', 'previous_hash', 'hash'],
]

/** Names of the columns that are integers. The others are text. */
export const INTEGER_COLUMNS: ReadonlySet<string> = new Set([
  'time_ms',
  'status',
  'lost',
  'v',
  'seq',
])

/**
 * Returns a value that the database stores unchanged: without lone surrogates and NUL. Otherwise the row
 * that is read back would differ from the row that was hashed.
 */
export function storable<Value>(value: Value): Value | string {
  if (typeof value !== 'string' || (value.isWellFormed() && !value.includes('\0'))) return value
  return value.toWellFormed().replaceAll('\0', '\ufffd')
}

/** Returns the columns of an event's row, before it has a place in the chain. */
export function rowOf(event: AuditEvent): ChainRow {
  const columns: Record<string, string | number | null | undefined> = columnsOf(event)
  for (const name in columns) columns[name] = storable(columns[name] ?? null)
  return columns as ChainRow
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
