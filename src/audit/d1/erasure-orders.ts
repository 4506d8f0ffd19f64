/** Erasure orders in D1. The gateway creates them; the audit Worker carries them out. */
import { v7 } from 'uuid'
import { Unavailable } from '../../errors.ts'
import { DeadlineExceeded, withDeadline } from '../../isolate/timers.ts'
import { type AuditErasures, callerDigest, type Erasure, nameDigest } from '../erasure.ts'
import { newSalt } from '../personal.ts'
import { QUERY_TIMEOUT_MS } from './audit-events.ts'
import { storable } from './audit-row.ts'

/** A row of `audit_erasures`. */
export interface ErasureRow {
  readonly id: string
  /** Id of the event that reports the end of the erasure. */
  readonly end_id: string
  readonly ordered_ms: number
  /** Null once the erasure is done, as is `subject`. */
  readonly issuer: string | null
  readonly subject: string | null
  /** The first row that D1 had when the erasure started; null before. */
  readonly first_seq: number | null
  /** The last exported row that was processed. */
  readonly exported_seq: number
  /**
   * Number of erased rows of the chain: while the erasure runs, only rows that D1 no longer has;
   * once it is done, all rows.
   */
  readonly rows: number
  readonly done_ms: number | null
}

const ORDER =
  'INSERT INTO audit_erasures (id, end_id, ordered_ms, issuer, subject, salt, caller_digest, ' +
  'name_digest, exported_seq, rows) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0)'
const FIND = 'SELECT * FROM audit_erasures WHERE id = ?'

/**
 * Creates the store of erasure orders. `now` returns milliseconds since the epoch. Throws
 * `Unavailable` if the table does not exist: no audit Worker has used the database yet.
 */
export function createErasureOrders(db: D1Database, now: () => number): AuditErasures {
  async function withinDeadline<Value>(work: Promise<Value>): Promise<Value> {
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
      // Normalizes the values as the rows of events do.
      const issuer = String(storable(person.issuer))
      const subject = String(storable(person.subject))
      const digests = await Promise.all([
        callerDigest(salt, person.issuer, person.subject),
        nameDigest(salt, person.subject),
      ])
      const values = [id, v7(), orderedMs, issuer, subject, salt, ...digests]
      await withinDeadline(
        db
          .prepare(ORDER)
          .bind(...values)
          .run(),
      )
      return { id, state: 'pending', orderedMs, rows: 0 }
    },
    async find(id) {
      const row = await withinDeadline(db.prepare(FIND).bind(id).first<ErasureRow>())
      return row === null ? undefined : erasureOf(row)
    },
  }
}

function erasureOf({ id, ordered_ms, first_seq, rows, done_ms }: ErasureRow): Erasure {
  const begun = first_seq === null ? 'pending' : 'running'
  return { id, state: done_ms === null ? begun : 'done', orderedMs: ordered_ms, rows }
}
