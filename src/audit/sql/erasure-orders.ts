/** Erasure orders in the database. The gateway creates them; the consumer carries them out. */

import { recordId } from '../../isolate/random-ids.ts'
import type { Erasing } from '../blocks/erasing.ts'
import { callerDigest, type Erasure, nameDigest, type Person } from '../erasure.ts'
import { newSalt } from '../personal.ts'
import { storable } from './audit-row.ts'
import { firstOf, type TrailDatabase } from './database.ts'
import { withinQuery } from './schema.ts'
import { sql } from './statement.ts'

/** A row of `audit_erasures`. */
export interface ErasureRow extends Erasing {
  /** Of the event that reports the end. */
  readonly end_id: string
  /** The first row that the database had when the erasure started; null before. */
  readonly first_seq: number | null
  /** The last exported row that was processed. */
  readonly exported_seq: number
  /** Erased rows: while the erasure runs, only those that the database no longer has; once done, all. */
  readonly rows: number
  readonly done_ms: number | null
  /** The first event of the last block that was processed. Undefined before the migration. */
  readonly block_seq?: number
  /** The last row whose change was read. Null or undefined: none. */
  readonly change_ms?: number | null
  readonly change_id?: string | null
  /** `tenant`, or null for the platform. */
  readonly owner: string | null
}

/** Creates the store of erasure orders. Throws `Unavailable` if no audit Worker has run yet. */
export function createErasureOrders(db: TrailDatabase, now: () => number) {
  return {
    /** Stores the order; the audit Worker carries it out. It also covers events in transit. */
    async order(person: Person, owner?: Erasure['owner']): Promise<Erasure> {
      const [id, orderedMs, salt] = [recordId(), now(), newSalt()]
      // Normalizes the values as the rows of events do.
      const issuer = storable(person.issuer)
      const subject = storable(person.subject)
      const [ofCaller, ofName] = await Promise.all([
        callerDigest(salt, person.issuer, person.subject),
        nameDigest(salt, person.subject),
      ])
      const tenant = person.tenant === undefined ? null : storable(person.tenant)
      const order = sql`INSERT INTO audit_erasures (id, end_id, ordered_ms, issuer, subject, salt,
          caller_digest, name_digest, tenant, owner, exported_seq, rows)
        VALUES (${id}, ${recordId()}, ${orderedMs}, ${issuer}, ${subject}, ${salt},
          ${ofCaller}, ${ofName}, ${tenant}, ${owner ?? null}, 0, 0)`
      await withinQuery(() => db.run([order]))
      return { id, state: 'pending', orderedMs, rows: 0, tenant: person.tenant, owner }
    },
    async find(id: string): Promise<Erasure | undefined> {
      const find = sql`SELECT * FROM audit_erasures WHERE id = ${id}`
      const row = await withinQuery(() => firstOf<ErasureRow>(db, find))
      return row === undefined ? undefined : erasureOf(row)
    },
  }
}

function erasureOf({ id, ordered_ms, first_seq, rows, done_ms, ...row }: ErasureRow): Erasure {
  const begun = first_seq === null ? 'pending' : 'running'
  const state = done_ms === null ? begun : 'done'
  // A database without the column has no erasure within a tenant.
  const tenant = row.tenant ?? undefined
  const owner = row.owner === 'tenant' ? row.owner : undefined
  return { id, state, orderedMs: ordered_ms, rows, tenant, owner }
}
