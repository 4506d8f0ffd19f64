/** Orders of erasure in D1: made by the gateway, carried out by the audit Worker. */
import { v7 } from 'uuid'
import { type AuditErasures, callerDigest, type Erasure, nameDigest } from '../../audit/erasure.ts'
import { newSalt } from '../../audit/personal.ts'
import { Unavailable } from '../../errors.ts'
import { DeadlineExceeded, withDeadline } from '../../timers.ts'
import { QUERY_TIMEOUT_MS } from './audit-events.ts'
import { storable } from './audit-row.ts'

/** A row of `audit_erasures`. */
export interface ErasureRow {
  readonly id: string
  /** Of the event that says that it is done. */
  readonly end_id: string
  readonly ordered_ms: number
  /** Null once it is done, as the next. */
  readonly issuer: string | null
  readonly subject: string | null
  /** The first row that D1 had when it began; null before. */
  readonly first_seq: number | null
  /** How far it is in the export. */
  readonly exported_seq: number
  /** Of the chain: those that were erased in the export only; once it is done, all. */
  readonly rows: number
  readonly done_ms: number | null
}

const ORDER =
  'INSERT INTO audit_erasures (id, end_id, ordered_ms, issuer, subject, salt, caller_digest, ' +
  'name_digest, exported_seq, rows) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0)'
const FIND = 'SELECT * FROM audit_erasures WHERE id = ?'

/** `now` is milliseconds since the epoch. A database without the table has no audit Worker yet. */
export function createErasureOrders(db: D1Database, now: () => number): AuditErasures {
  async function asked<Value>(work: Promise<Value>): Promise<Value> {
    try {
      return await withDeadline(work, QUERY_TIMEOUT_MS)
    } catch (cause) {
      const fault = cause instanceof DeadlineExceeded ? 'timeout' : 'refused'
      throw new Unavailable('audit_log', fault, { cause })
    }
  }

  return {
    async order(person) {
      const [id, orderedMs, salt] = [v7(), now(), newSalt()]
      // As events have them.
      const issuer = String(storable(person.issuer))
      const subject = String(storable(person.subject))
      const digests = await Promise.all([
        callerDigest(salt, person.issuer, person.subject),
        nameDigest(salt, person.subject),
      ])
      const values = [id, v7(), orderedMs, issuer, subject, salt, ...digests]
      await asked(
        db
          .prepare(ORDER)
          .bind(...values)
          .run(),
      )
      return { id, state: 'pending', orderedMs, rows: 0 }
    },
    async find(id) {
      const row = await asked(db.prepare(FIND).bind(id).first<ErasureRow>())
      return row === null ? undefined : erasureOf(row)
    },
  }
}

function erasureOf({ id, ordered_ms, first_seq, rows, done_ms }: ErasureRow): Erasure {
  const begun = first_seq === null ? 'pending' : 'running'
  return { id, state: done_ms === null ? begun : 'done', orderedMs: ordered_ms, rows }
}
