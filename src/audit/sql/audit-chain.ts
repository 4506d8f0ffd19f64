/** Appends events to the chain. Any number of consumers can append at the same time. */

import type { Digest } from '../../crypto/sha256.ts'
import { sleep } from '../../isolate/timers.ts'
import { chainBlocks, type GivenEvent, intoBlocks } from '../blocks/block.ts'
import { eventOfLine } from '../blocks/line.ts'
import {
  type ChainPlace,
  type Checkpoint,
  type CheckpointSealer,
  GENESIS,
  PARTITION,
} from '../chain.ts'
import { type Forgotten, forgettingLate } from '../erasure.ts'
import { timeMs } from '../time-of-event.ts'
import { idsAround, knownIds as idsOfBlocks, insertBlock } from './block-rows.ts'
import { type ConsumerDatabase, isFault } from './database.ts'
import { findHours, hoursIn, keepHours } from './hour-rows.ts'
import { within } from './schema.ts'
import { type Sql, sql } from './statement.ts'

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
 * An attempt usually makes 12 statements: 7 that read, and 5 for the head, a block, its usage, its hour and a checkpoint. One
 * more reads ids if there are rows that are not earlier than the events. Each further block makes up to 3 more, and each
 * further hour 1, see `append-parts.ts`.
 */
const MAX_ATTEMPTS = 5
const RETRY_MS = 20

const HEAD = sql`SELECT seq, hash, sealed_seq, sealed_ms FROM audit_heads WHERE partition = ${PARTITION}`
const LAST = sql`SELECT seq, coalesce(hash, '') AS hash FROM audit_events
  WHERE partition = ${PARTITION} AND seq IS NOT NULL ORDER BY seq DESC LIMIT 1`
const LAST_BLOCK = sql`SELECT last_seq AS seq, hash FROM audit_blocks ORDER BY first_seq DESC LIMIT 1`
const FORGOTTEN = sql`SELECT salt, caller_digest, name_digest, ordered_ms, tenant FROM audit_erasures
  WHERE salt IS NOT NULL`
/** Events of one id have one time. So rows of a version before the blocks that end earlier have none of the events. */
const rowsSince = (events: readonly GivenEvent[]): Sql => {
  const since = events.reduce(
    (least, { time }) => Math.min(least, timeMs(time)),
    Number.MAX_SAFE_INTEGER,
  )
  // Without an order, PostgreSQL may plan to read the whole table, as if a third of the rows were later.
  return sql`SELECT id FROM audit_events WHERE time_ms >= ${since} ORDER BY time_ms DESC LIMIT 1`
}
const idsOfRows = (db: ConsumerDatabase, ids: readonly string[]): Sql =>
  sql`SELECT id FROM audit_events WHERE ${db.dialect.isAmong('id', ids)}`
const begin = (nowMs: number): Sql =>
  sql`INSERT INTO audit_heads (partition, seq, hash, sealed_seq, sealed_ms)
    VALUES (${PARTITION}, ${GENESIS.seq}, ${GENESIS.hash}, 0, ${nowMs}) ON CONFLICT DO NOTHING`

interface HeadRow extends ChainPlace {
  readonly sealed_seq: number
  readonly sealed_ms: number
}

/**
 * Appends events in their order, all or none, and seals the chain when a checkpoint is due. Skips
 * events with an id that exists already, so a repeated delivery has no effect. If another consumer
 * appends at the same time, this one appends after its rows, so the chain never forks. Removes
 * personal data of persons who were erased before the event arrived. Returns the number of statements. Rejects with
 * the error of the database.
 */
export async function insertAuditEvents(
  db: ConsumerDatabase,
  events: readonly GivenEvent[],
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
      // Another consumer was faster.
      if (!isFault(error, 'constraint') || attempt === MAX_ATTEMPTS || isSpent) throw error
      await sleep(RETRY_MS * attempt * Math.random())
    }
  }
}

async function append(
  db: ConsumerDatabase,
  events: ReadonlyMap<string, GivenEvent>,
  options: AppendOptions,
  made: { statements: number },
): Promise<void> {
  const { seal, nowMs } = options
  const run = (statements: readonly Sql[]) => {
    made.statements += statements.length
    return within(db.run(statements, { isRepeated: true }))
  }
  const [heads, lastRows, lastBlocks, laterRows, forgotten, hours, ...blocks] = await run([
    HEAD,
    LAST,
    LAST_BLOCK,
    rowsSince([...events.values()]),
    FORGOTTEN,
    findHours(db, [...events.values()]),
    ...idsAround([...events.values()]),
  ])
  const stored = heads?.rows[0] as HeadRow | undefined
  const head = stored ?? { ...GENESIS, sealed_seq: 0, sealed_ms: nowMs }
  const persons = (forgotten?.rows ?? []) as Forgotten[]
  const hasRows = (laterRows?.rows.length ?? 0) > 0
  const [rows] = hasRows ? await run([idsOfRows(db, [...events.keys()])]) : []
  const rowIds = ((rows?.rows ?? []) as { id: string }[]).map(({ id }) => id)
  const knownIds = new Set([...rowIds, ...blocks.flatMap((found) => idsOfBlocks(found.rows))])
  const fresh = [...events.values()].filter(
    ({ id }) => !knownIds.has(id) && !knownIds.has(id.toLowerCase()),
  )
  const left =
    persons.length === 0
      ? fresh
      : await Promise.all(fresh.map((event) => withoutForgotten(event, persons)))
  // Appends to the last row or block, even if the stored head was set back.
  const lasts = [lastRows, lastBlocks].map((found) => found?.rows[0] as ChainPlace | undefined)
  const last = lasts.reduce<ChainPlace>(
    (most, one) => (one !== undefined && one.seq > most.seq ? one : most),
    head,
  )
  const chained = await blocksBehind(db, last, left, options)
  const end = chained.head
  const checkpoint = isSealDue(head, end.seq, nowMs) ? await seal('sealed', end, nowMs) : undefined
  if (fresh.length === 0 && checkpoint === undefined && stored !== undefined) return
  await run([
    ...(stored === undefined ? [begin(nowMs)] : []),
    moveHead(head, end, checkpoint),
    ...chained.statements,
    ...keepHours(hoursIn(hours?.rows ?? []), last.seq + 1, left),
    ...(checkpoint === undefined ? [] : [keepCheckpoint(checkpoint)]),
  ])
}

/** Returns the same event if it has no data of the persons. */
async function withoutForgotten(
  event: GivenEvent,
  persons: readonly Forgotten[],
): Promise<GivenEvent> {
  const whole = 'line' in event ? eventOfLine(event.line) : event
  const left = await forgettingLate(whole, persons)
  return left === whole ? event : left
}

async function blocksBehind(
  db: ConsumerDatabase,
  place: ChainPlace,
  events: readonly GivenEvent[],
  { digest }: AppendOptions,
) {
  const groups = intoBlocks(events)
  const { head, blocks } = await chainBlocks(place, groups, digest)
  const statements: Sql[] = []
  for (const [index, block] of blocks.entries())
    statements.push(...(await insertBlock(db, block, groups[index]?.events ?? [])))
  return { head, statements }
}

function isSealDue({ sealed_seq, sealed_ms }: HeadRow, seq: number, nowMs: number): boolean {
  const unsealed = seq - sealed_seq
  if (unsealed === 0) return false
  return unsealed >= EVENTS_PER_CHECKPOINT || nowMs - sealed_ms >= CHECKPOINT_INTERVAL_MS
}

/** Returns the statement that moves the head. It fails with its transaction if `head` has moved. */
function moveHead(head: HeadRow, to: ChainPlace, checkpoint: Checkpoint | undefined): Sql {
  const sealedSeq = checkpoint?.seq ?? head.sealed_seq
  const sealedMs = checkpoint?.time_ms ?? head.sealed_ms
  // If another consumer moved the head, `seq` becomes NULL. Its column does not accept NULL, so the
  // whole transaction fails.
  return sql`UPDATE audit_heads SET
    seq = CASE WHEN seq = ${head.seq} AND hash = ${head.hash} THEN ${to.seq} END,
    hash = ${to.hash}, sealed_seq = ${sealedSeq}, sealed_ms = ${sealedMs} WHERE partition = ${PARTITION}`
}

/** Returns the statement that stores a checkpoint. */
export function keepCheckpoint(checkpoint: Checkpoint): Sql {
  const { partition, seq, kind, hash, time_ms, signature } = checkpoint
  return sql`INSERT INTO audit_checkpoints (partition, seq, kind, hash, time_ms, signature)
    VALUES (${partition}, ${seq}, ${kind}, ${hash}, ${time_ms}, ${signature}) ON CONFLICT DO NOTHING`
}
