/** Writes events as rows of `audit_events`, as versions before the blocks did. */
import {
  type ChainPlace,
  type CheckpointSealer,
  GENESIS,
  PARTITION,
} from '../../src/audit/chain.ts'
import { type ChainRow, canonicalJson } from '../../src/audit/chain-row.ts'
import { type AuditEvent, lostEvent } from '../../src/audit/event.ts'
import { CALLER, CHANGE, newSalt, type PersonalGroup } from '../../src/audit/personal.ts'
import { keepCheckpoint } from '../../src/audit/sql/audit-chain.ts'
import { type AuditRow, storable } from '../../src/audit/sql/audit-row.ts'
import { type ConsumerDatabase, rowsOf } from '../../src/audit/sql/database.ts'
import { sql, text } from '../../src/audit/sql/statement.ts'
import { type Digest, sha256 } from '../../src/crypto/sha256.ts'
import { prepare } from './prepared.ts'

const PERSONAL_GROUPS: readonly PersonalGroup[] = [CALLER, CHANGE]

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

/** Names of all columns of a row in the chain: of any event, its commitments, and its place. */
const CHAIN_COLUMNS: readonly string[] = [
  ...Object.keys(columnsOf(lostEvent(1, '', 0))),
  ...['salt', 'commitment', 'change_salt', 'change_commitment'],
  ...['v', 'partition', 'seq', 'previous_hash', 'hash'],
]

/** Names of the columns that are integers. The others are text. */
const INTEGER_COLUMNS: ReadonlySet<string> = new Set(['time_ms', 'status', 'lost', 'v', 'seq'])

/** Returns the columns of an event's row, before it has a place in the chain. */
export function rowOf(event: AuditEvent): ChainRow & AuditRow {
  const columns: Record<string, string | number | null | undefined> = columnsOf(event)
  for (const name in columns) columns[name] = storable(columns[name] ?? null)
  return columns as ChainRow & AuditRow
}

/**
 * Returns the canonical JSON of the named columns that are not null. Null columns are omitted, so that
 * a column that is added later does not change earlier hashes. `names` are sorted.
 */
function canonicalColumns(row: ChainRow, names: readonly string[]): string {
  let members = ''
  for (const name of names) {
    const value = row[name] ?? null
    // No name of a column has a character that JSON escapes.
    if (value !== null) members += `,"${name}":${JSON.stringify(value)}`
  }
  return `{${members.slice(1)}}`
}

/** The columns of each group in the order of canonical JSON. */
const SORTED: ReadonlyMap<PersonalGroup, readonly string[]> = new Map(
  PERSONAL_GROUPS.map((group) => [group, Object.keys(group.erased).sort()]),
)

/**
 * Adds a salt and a commitment for each group that has a value. The commitment is the SHA-256 of the
 * salt, a line feed, and the canonical JSON of the columns that are not null.
 */
export async function committed(row: ChainRow, digest: Digest = sha256): Promise<ChainRow> {
  const columns: Record<string, ChainRow[string]> = { ...row }
  for (const [group, names] of SORTED) {
    const isEmpty = names.every((name) => (row[name] ?? null) === null)
    const salt = isEmpty ? null : newSalt()
    columns[group.salt] = salt
    const given = salt && digest(`${salt}\n${canonicalColumns(row, names)}`)
    columns[group.commitment] = typeof given === 'object' ? await given : given
  }
  return columns
}

/** Version of the hash format. Rows before it have null there, and their hash covers all columns. */
const ROW_VERSION = 2

/** Columns that a hash does not cover directly: the hashes, and what commitments cover. */
const UNCOVERED = new Set([
  ...['previous_hash', 'hash', 'erasure'],
  ...PERSONAL_GROUPS.flatMap(({ salt, erased }) => [salt, ...Object.keys(erased)]),
])

/** Returns the columns that the hash of a row covers directly, in the order of canonical JSON. */
function coveredColumns(row: ChainRow): readonly string[] {
  return Object.keys(row)
    .filter((name) => !UNCOVERED.has(name))
    .sort()
}

/**
 * Chains rows after a place, in their order. Returns them and the place of the last one. All rows have
 * the columns of the first one. The hash of a row is the SHA-256 of the previous row's hash, a line feed,
 * and the canonical JSON of the covered columns that are not null.
 */
export async function chainBehind(
  head: ChainPlace,
  rows: readonly ChainRow[],
  digest: Digest = sha256,
): Promise<{ readonly rows: readonly ChainRow[]; readonly head: ChainPlace }> {
  const chained: ChainRow[] = []
  let { seq, hash } = head
  let names: readonly string[] | undefined
  for (const row of rows) {
    seq += 1
    const place = { v: ROW_VERSION, partition: PARTITION, seq, previous_hash: hash, hash }
    const placed = Object.assign(await committed(row, digest), place)
    names ??= coveredColumns(placed)
    const given = digest(`${hash}\n${canonicalColumns(placed, names)}`)
    hash = typeof given === 'string' ? given : await given
    placed.hash = hash
    chained.push(placed)
  }
  return { rows: chained, head: { seq, hash } }
}

const BEGIN =
  'INSERT INTO audit_heads (partition, seq, hash, sealed_seq, sealed_ms) ' +
  'VALUES (?, ?, ?, 0, ?) ON CONFLICT DO NOTHING'
const HEAD = 'SELECT seq, hash, sealed_seq, sealed_ms FROM audit_heads WHERE partition = ?'
const MOVE =
  'UPDATE audit_heads SET seq = ?, hash = ?, sealed_seq = ?, sealed_ms = ? WHERE partition = ?'
const EVENTS_PER_CHECKPOINT = 1_000
const CHECKPOINT_INTERVAL_MS = 60_000

interface Head extends ChainPlace {
  readonly sealed_seq: number
  readonly sealed_ms: number
}

/** Appends events to the chain as rows. Expects that no other consumer appends, and that all are new. */
export async function insertEarlierRows(
  db: ConsumerDatabase,
  events: readonly AuditEvent[],
  {
    seal,
    nowMs,
    digest,
  }: {
    readonly seal: CheckpointSealer
    readonly nowMs: number
    readonly digest?: Digest | undefined
  },
): Promise<void> {
  await prepare(db, BEGIN).bind(PARTITION, GENESIS.seq, GENESIS.hash, nowMs).run()
  const before = await prepare(db, HEAD).bind(PARTITION).first<Head>()
  if (before === undefined) throw new Error('the chain has no head')
  const { rows, head } = await chainBehind(before, events.map(rowOf), digest)
  const unsealed = head.seq - before.sealed_seq
  const isDue =
    unsealed >= EVENTS_PER_CHECKPOINT ||
    (unsealed > 0 && nowMs - before.sealed_ms >= CHECKPOINT_INTERVAL_MS)
  const sealed = isDue ? await seal('sealed', head, nowMs) : undefined
  const { seq = before.sealed_seq, time_ms = before.sealed_ms } = sealed ?? {}
  await db.run([
    ...db.dialect.insert({
      table: 'audit_events',
      columns: CHAIN_COLUMNS,
      integers: INTEGER_COLUMNS,
      rows: rows.map((row) => CHAIN_COLUMNS.map((column) => row[column] ?? null)),
    }),
    prepare(db, MOVE).bind(head.seq, head.hash, seq, time_ms, PARTITION).statement,
    ...(sealed === undefined ? [] : [keepCheckpoint(sealed)]),
  ])
}

/** Columns of later migrations, which a row of the first format had not. */
const LATER = [
  ...['observed', 'rejected', 'host', 'origin', 'call', 'api_key', 'grants', 'fields'],
  ...['v', 'salt', 'commitment', 'change_salt', 'change_commitment', 'erasure'],
]

/** Gives all rows of the chain the first format, which had no commitments, and removes the checkpoints. */
export async function toFirstFormat(db: ConsumerDatabase): Promise<void> {
  const rows = await rowsOf<ChainRow>(db, sql`SELECT * FROM audit_events ORDER BY seq`)
  let previous = GENESIS.hash
  for (const row of rows) {
    const { hash: _, previous_hash: __, ...columns } = row
    const then = Object.entries(columns).filter(([name]) => !LATER.includes(name))
    const hash = await sha256(`${previous}\n${canonicalJson(Object.fromEntries(then))}`)
    const cleared = text(LATER.map((name) => `${name} = NULL`).join(', '))
    await db.run([
      sql`UPDATE audit_events SET ${cleared}, hash = ${hash}, previous_hash = ${previous} WHERE seq = ${row.seq ?? null}`,
    ])
    previous = hash
  }
  await db.run([sql`UPDATE audit_heads SET hash = ${previous}`, sql`DELETE FROM audit_checkpoints`])
}
