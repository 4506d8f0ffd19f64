/** Where a chain of D1 ends, and the statements that move it. */
import { type ChainPlace, GENESIS, PARTITION } from '../../audit/chain.ts'
import type { Checkpoint } from '../../audit/chain-checkpoint.ts'
import { within } from './deadline.ts'

/** A row of `audit_heads`, and the place that the next row goes behind. */
export interface ChainHead {
  /** As it is stored: what nobody else may have changed meanwhile. */
  readonly stored: ChainPlace
  readonly sealedSeq: number
  /** Milliseconds since the epoch. */
  readonly sealedMs: number
  /** The last place there is, also where somebody has set the head back. */
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
// A head that somebody else has moved becomes NULL, which its column does not take: the whole
// transaction fails.
const MOVE =
  'UPDATE audit_heads SET seq = CASE WHEN seq = ?2 AND hash = ?3 THEN ?4 END, hash = ?5, ' +
  'sealed_seq = ?6, sealed_ms = ?7 WHERE partition = ?1'
const SEAL =
  'INSERT INTO audit_checkpoints (partition, seq, kind, hash, time_ms, signature) ' +
  'VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING'

/** Reads the head, and begins the chain where there is none; `more` is read at the same moment. */
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

/** The statement that moves the head; fails with its transaction where it was moved meanwhile. */
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

/** The statement that keeps a checkpoint. */
export const keepCheckpoint = (db: D1Database, checkpoint: Checkpoint): D1PreparedStatement =>
  db
    .prepare(SEAL)
    .bind(
      ...[checkpoint.partition, checkpoint.seq, checkpoint.kind],
      ...[checkpoint.hash, checkpoint.time_ms, checkpoint.signature],
    )

/** Whether D1 failed because another consumer was faster. */
export const isOvertaken = (error: unknown): boolean =>
  error instanceof Error && /constraint failed/i.test(error.message)
