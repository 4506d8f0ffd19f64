import { type ChainPlace, type Checkpoint, GENESIS, PARTITION } from '../chain.ts'
import { within } from './schema.ts'

/** A row of `audit_heads`, and the place after which the next row is appended. */
export interface ChainHead {
  /** The head as stored. It must be unchanged when this consumer moves it. */
  readonly stored: ChainPlace
  readonly sealedSeq: number
  /** Milliseconds since the epoch. */
  readonly sealedMs: number
  /** The place of the last row, even if the stored head was set back. */
  readonly end: ChainPlace
}

interface HeadRow {
  readonly seq: number
  readonly hash: string
  readonly sealed_seq: number
  readonly sealed_ms: number
}

const BEGIN =
  'INSERT INTO audit_heads (partition, seq, hash, sealed_seq, sealed_ms) ' +
  'VALUES (?, ?, ?, 0, ?) ON CONFLICT DO NOTHING'
const HEAD = 'SELECT seq, hash, sealed_seq, sealed_ms FROM audit_heads WHERE partition = ?'
const LAST =
  "SELECT seq, coalesce(hash, '') AS hash FROM audit_events " +
  'WHERE partition = ? AND seq IS NOT NULL ORDER BY seq DESC LIMIT 1'
// If another consumer moved the head, `seq` becomes NULL. Its column does not accept NULL, so the
// whole transaction fails.
const MOVE =
  'UPDATE audit_heads SET seq = CASE WHEN seq = ?2 AND hash = ?3 THEN ?4 END, hash = ?5, ' +
  'sealed_seq = ?6, sealed_ms = ?7 WHERE partition = ?1'
const SEAL =
  'INSERT INTO audit_checkpoints (partition, seq, kind, hash, time_ms, signature) ' +
  'VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING'

/** Reads the head, and starts the chain if there is none. Reads `more` in the same transaction. */
export async function readHead(
  db: D1Database,
  nowMs: number,
  more: readonly D1PreparedStatement[],
): Promise<{ readonly head: ChainHead; readonly more: readonly D1Result[] }> {
  const [, heads, lasts, ...answers] = await within(
    db.batch([
      db.prepare(BEGIN).bind(PARTITION, GENESIS.seq, GENESIS.hash, nowMs),
      db.prepare(HEAD).bind(PARTITION),
      db.prepare(LAST).bind(PARTITION),
      ...more,
    ]),
  )
  const row = heads?.results[0] as HeadRow | undefined
  if (row === undefined) throw new Error('the head of the chain is gone')
  const last = lasts?.results[0] as ChainPlace | undefined
  const stored = { seq: row.seq, hash: row.hash }
  return {
    head: {
      stored,
      sealedSeq: row.sealed_seq,
      sealedMs: row.sealed_ms,
      end: last !== undefined && last.seq > stored.seq ? last : stored,
    },
    more: answers,
  }
}

/**
 * Builds the statement that moves the head. It fails with its transaction if the head was moved
 * meanwhile.
 */
export function moveHead(
  db: D1Database,
  { stored, sealedSeq, sealedMs }: ChainHead,
  to: ChainPlace,
  checkpoint: Checkpoint | undefined,
): D1PreparedStatement {
  return db
    .prepare(MOVE)
    .bind(
      ...[PARTITION, stored.seq, stored.hash, to.seq, to.hash],
      ...[checkpoint?.seq ?? sealedSeq, checkpoint?.time_ms ?? sealedMs],
    )
}

/** Builds the statement that stores a checkpoint. */
export const keepCheckpoint = (db: D1Database, checkpoint: Checkpoint): D1PreparedStatement =>
  db
    .prepare(SEAL)
    .bind(
      ...[checkpoint.partition, checkpoint.seq, checkpoint.kind],
      ...[checkpoint.hash, checkpoint.time_ms, checkpoint.signature],
    )

/** Reports whether a D1 error means that another consumer was faster. */
export const isOvertaken = (error: unknown): boolean =>
  error instanceof Error && /constraint failed/i.test(error.message)
