/**
 * Appends events to the chain of the audit trail in D1. Any number of consumers can append at the
 * same time.
 */

import { sleep } from '../../isolate/timers.ts'
import {
  CHECKPOINT_INTERVAL_MS,
  type CheckpointSealer,
  chainBehind,
  EVENTS_PER_CHECKPOINT,
} from '../chain.ts'
import { type Forgotten, forgettingLate } from '../erasure.ts'
import type { AuditEvent } from '../event.ts'
import { CHAIN_COLUMNS, rowOf } from './audit-row.ts'
import { type ChainHead, isOvertaken, keepCheckpoint, moveHead, readHead } from './chain-head.ts'
import { within } from './schema.ts'

export interface AppendOptions {
  readonly seal: CheckpointSealer
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}

/**
 * An attempt makes seven statements, or eight with a checkpoint. An invocation may make 50 on the
 * free plan.
 */
const MAX_ATTEMPTS = 6
const RETRY_MS = 20

// Has no ON CONFLICT: a place or an id that is taken must fail the transaction.
const INSERT =
  `INSERT INTO audit_events (${CHAIN_COLUMNS.join(', ')}) ` +
  `SELECT ${CHAIN_COLUMNS.map((_, index) => `value ->> ${index}`).join(', ')} FROM json_each(?)`
/** D1 binds values of up to 1 MB, and an event with an operator's change may have 32 KB. */
const MAX_INSERT_CHARACTERS = 250_000
const KNOWN = 'SELECT id FROM audit_events WHERE id IN (SELECT value FROM json_each(?))'
const FORGOTTEN = 'SELECT * FROM audit_erasures WHERE salt IS NOT NULL'

/**
 * Appends events in their order, all or none, and seals the chain when a checkpoint is due. Skips
 * events with an id that exists already, so a repeated delivery has no effect. If another consumer
 * appends at the same time, this one appends after its rows, so the chain never forks. Removes
 * personal data of persons who were erased before the event arrived. Rejects with D1's error.
 */
export async function insertAuditEvents(
  db: D1Database,
  events: readonly AuditEvent[],
  options: AppendOptions,
): Promise<void> {
  const unique = new Map(events.map((event) => [event.id, event]))
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await append(db, unique, options)
    } catch (error) {
      if (!isOvertaken(error) || attempt === MAX_ATTEMPTS) throw error
      await sleep(RETRY_MS * attempt * Math.random())
    }
  }
}

async function append(
  db: D1Database,
  events: ReadonlyMap<string, AuditEvent>,
  { seal, nowMs }: AppendOptions,
): Promise<void> {
  const ids = JSON.stringify([...events.keys()])
  const { head, more } = await readHead(db, nowMs, [
    db.prepare(KNOWN).bind(ids),
    db.prepare(FORGOTTEN),
  ])
  const [found = [], forgotten = []] = more.map(({ results }) => results)
  const known = new Set((found as { id: string }[]).map(({ id }) => id))
  const unknown = [...events.values()].filter(({ id }) => !known.has(id))
  const fresh = await Promise.all(
    unknown.map(async (event) => rowOf(await forgettingLate(event, forgotten as Forgotten[]))),
  )
  const chained = await chainBehind(head.end, fresh)
  const end = chained.head
  const checkpoint = isSealDue(head, end.seq, nowMs) ? await seal('sealed', end, nowMs) : undefined
  if (fresh.length === 0 && checkpoint === undefined) return
  const values = chained.rows.map((row) =>
    JSON.stringify(CHAIN_COLUMNS.map((column) => row[column])),
  )
  await within(
    db.batch([
      moveHead(db, head, end, checkpoint),
      ...inserts(values).map((rows) => db.prepare(INSERT).bind(rows)),
      ...(checkpoint === undefined ? [] : [keepCheckpoint(db, checkpoint)]),
    ]),
  )
}

/** Joins rows, each a JSON array, into JSON arrays that are small enough to bind. */
function inserts(rows: readonly string[]): readonly string[] {
  const arrays: string[][] = [[]]
  let characters = 0
  for (const row of rows) {
    characters += row.length
    if (characters > MAX_INSERT_CHARACTERS && characters > row.length) {
      arrays.push([])
      characters = row.length
    }
    arrays.at(-1)?.push(row)
  }
  return arrays.map((array) => `[${array.join(',')}]`)
}

function isSealDue({ sealedSeq, sealedMs }: ChainHead, seq: number, nowMs: number): boolean {
  const unsealed = seq - sealedSeq
  if (unsealed === 0) return false
  return unsealed >= EVENTS_PER_CHECKPOINT || nowMs - sealedMs >= CHECKPOINT_INTERVAL_MS
}
