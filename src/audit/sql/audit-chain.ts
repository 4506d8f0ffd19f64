/** Appends events to the chain in D1. Any number of consumers can append at the same time. */

import type { Digest } from '../../crypto/sha256.ts'
import { sleep } from '../../isolate/timers.ts'
import { chainBlocks, intoBlocks } from '../blocks/block.ts'
import {
  type ChainPlace,
  type Checkpoint,
  type CheckpointSealer,
  GENESIS,
  PARTITION,
} from '../chain.ts'
import { type Forgotten, forgettingLate } from '../erasure.ts'
import type { AuditEvent } from '../event.ts'
import { idsAround, knownIds as idsOfBlocks, insertBlock } from './block-rows.ts'
import type { AuditDatabase, AuditStatement } from './database.ts'
import { findHours, hoursIn, keepHours } from './hour-rows.ts'
import { within } from './schema.ts'

export interface AppendOptions {
  readonly seal: CheckpointSealer
  readonly nowMs: number
  /** Default: that of Web Crypto. */
  readonly digest?: Digest | undefined
  /** Statements that an append may make. An overtaken one that might exceed them is not repeated. Default: no bound. */
  readonly maxStatements?: number | undefined
}

/** Seals the chain after this number of events. */
const EVENTS_PER_CHECKPOINT = 1_000
/** Seals the chain with the first batch after this interval, if that is earlier. */
const CHECKPOINT_INTERVAL_MS = 60_000
/**
 * An attempt usually makes 12 statements: 7 that read, and 5 for the head, a block, its usage, its hour and a checkpoint. Each
 * further block makes up to 3 more, and each further hour 1, see `append-parts.ts`.
 */
const MAX_ATTEMPTS = 5
const RETRY_MS = 20

const BEGIN =
  'INSERT INTO audit_heads (partition, seq, hash, sealed_seq, sealed_ms) ' +
  'VALUES (?, ?, ?, 0, ?) ON CONFLICT DO NOTHING'
const HEAD = 'SELECT seq, hash, sealed_seq, sealed_ms FROM audit_heads WHERE partition = ?'
const LAST =
  "SELECT seq, coalesce(hash, '') AS hash FROM audit_events " +
  'WHERE partition = ? AND seq IS NOT NULL ORDER BY seq DESC LIMIT 1'
const LAST_BLOCK = 'SELECT last_seq AS seq, hash FROM audit_blocks ORDER BY first_seq DESC LIMIT 1'
const KNOWN = 'SELECT id FROM audit_events WHERE id IN (SELECT value ->> 0 FROM json_each(?))'
const FORGOTTEN =
  'SELECT salt, caller_digest, name_digest, ordered_ms, tenant FROM audit_erasures ' +
  'WHERE salt IS NOT NULL'
// If another consumer moved the head, `seq` becomes NULL. Its column does not accept NULL, so the
// whole transaction fails.
const MOVE =
  'UPDATE audit_heads SET seq = CASE WHEN seq = ?2 AND hash = ?3 THEN ?4 END, hash = ?5, ' +
  'sealed_seq = ?6, sealed_ms = ?7 WHERE partition = ?1'
const SEAL =
  'INSERT INTO audit_checkpoints (partition, seq, kind, hash, time_ms, signature) ' +
  'VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING'

/** A row of `audit_heads`. */
interface HeadRow extends ChainPlace {
  readonly sealed_seq: number
  readonly sealed_ms: number
}

/**
 * Appends events in their order, all or none, and seals the chain when a checkpoint is due. Skips
 * events with an id that exists already, so a repeated delivery has no effect. If another consumer
 * appends at the same time, this one appends after its rows, so the chain never forks. Removes
 * personal data of persons who were erased before the event arrived. Returns the number of statements. Rejects with D1's
 * error.
 */
export async function insertAuditEvents(
  db: AuditDatabase,
  events: readonly AuditEvent[],
  options: AppendOptions,
): Promise<number> {
  const unique = new Map(events.map((event) => [event.id, event]))
  const { maxStatements = Number.POSITIVE_INFINITY } = options
  const made = { statements: 0 }
  for (let attempt = 1; ; attempt += 1) {
    const before = made.statements
    try {
      await append(db, unique, options, made)
      return made.statements
    } catch (error) {
      const isSpent = made.statements + (made.statements - before) > maxStatements
      if (!isOvertaken(error) || attempt === MAX_ATTEMPTS || isSpent) throw error
      await sleep(RETRY_MS * attempt * Math.random())
    }
  }
}

/** Reports whether a D1 error means that another consumer was faster. */
const isOvertaken = (error: unknown): boolean =>
  error instanceof Error && /constraint failed/i.test(error.message)

async function append(
  db: AuditDatabase,
  events: ReadonlyMap<string, AuditEvent>,
  options: AppendOptions,
  made: { statements: number },
): Promise<void> {
  const { seal, nowMs } = options
  const run = (statements: AuditStatement[]) => {
    made.statements += statements.length
    return within(db.batch(statements))
  }
  const [heads, lastRows, lastBlocks, rows, forgotten, hours, ...blocks] = await run([
    db.prepare(HEAD).bind(PARTITION),
    db.prepare(LAST).bind(PARTITION),
    db.prepare(LAST_BLOCK),
    db.prepare(KNOWN).bind(JSON.stringify([...events.keys()].map((id) => [id]))),
    db.prepare(FORGOTTEN),
    findHours(db, [...events.values()]),
    ...idsAround(db, [...events.values()]),
  ])
  const stored = heads?.results[0] as HeadRow | undefined
  const head = stored ?? { ...GENESIS, sealed_seq: 0, sealed_ms: nowMs }
  const begin = db.prepare(BEGIN).bind(PARTITION, GENESIS.seq, GENESIS.hash, nowMs)
  const persons = (forgotten?.results ?? []) as Forgotten[]
  const rowIds = ((rows?.results ?? []) as { id: string }[]).map(({ id }) => id)
  const knownIds = new Set([...rowIds, ...blocks.flatMap(({ results }) => idsOfBlocks(results))])
  const fresh = [...events.values()].filter(
    ({ id }) => !knownIds.has(id) && !knownIds.has(id.toLowerCase()),
  )
  const left =
    persons.length === 0
      ? fresh
      : await Promise.all(fresh.map((event) => forgettingLate(event, persons)))
  // Appends to the last row or block, even if the stored head was set back.
  const lasts = [lastRows, lastBlocks].map((found) => found?.results[0] as ChainPlace | undefined)
  const last = lasts.reduce<ChainPlace>(
    (most, one) => (one !== undefined && one.seq > most.seq ? one : most),
    head,
  )
  const chained = await blocksBehind(db, last, left, options)
  const end = chained.head
  const checkpoint = isSealDue(head, end.seq, nowMs) ? await seal('sealed', end, nowMs) : undefined
  if (fresh.length === 0 && checkpoint === undefined && stored !== undefined) return
  await run([
    ...(stored === undefined ? [begin] : []),
    moveHead(db, head, end, checkpoint),
    ...chained.statements,
    ...keepHours(db, hoursIn(hours?.results ?? []), last.seq + 1, left),
    ...(checkpoint === undefined ? [] : [keepCheckpoint(db, checkpoint)]),
  ])
}

interface Chained {
  readonly head: ChainPlace
  readonly statements: readonly AuditStatement[]
}

async function blocksBehind(
  db: AuditDatabase,
  place: ChainPlace,
  events: readonly AuditEvent[],
  { digest }: AppendOptions,
): Promise<Chained> {
  const groups = intoBlocks(events)
  const { head, blocks } = await chainBlocks(place, groups, digest)
  const statements: AuditStatement[] = []
  for (const [index, block] of blocks.entries())
    statements.push(...(await insertBlock(db, block, groups[index]?.events ?? [])))
  return { head, statements }
}

function isSealDue({ sealed_seq, sealed_ms }: HeadRow, seq: number, nowMs: number): boolean {
  const unsealed = seq - sealed_seq
  if (unsealed === 0) return false
  return unsealed >= EVENTS_PER_CHECKPOINT || nowMs - sealed_ms >= CHECKPOINT_INTERVAL_MS
}

/** Builds the statement that moves the head. It fails with its transaction if `head` has moved. */
function moveHead(
  db: AuditDatabase,
  head: HeadRow,
  to: ChainPlace,
  checkpoint: Checkpoint | undefined,
): AuditStatement {
  const sealedSeq = checkpoint?.seq ?? head.sealed_seq
  const sealedMs = checkpoint?.time_ms ?? head.sealed_ms
  const values = [PARTITION, head.seq, head.hash, to.seq, to.hash, sealedSeq, sealedMs]
  return db.prepare(MOVE).bind(...values)
}

/** Builds the statement that stores a checkpoint. */
export function keepCheckpoint(db: AuditDatabase, checkpoint: Checkpoint): AuditStatement {
  const { partition, seq, kind, hash, time_ms, signature } = checkpoint
  return db.prepare(SEAL).bind(partition, seq, kind, hash, time_ms, signature)
}
