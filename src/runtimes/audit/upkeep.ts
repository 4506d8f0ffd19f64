/** Background work of the consumer: erasures, exports and retention. */

import type { CheckpointSealer } from '../../audit/chain.ts'
import { type ExportBucket, exportChain } from '../../audit/r2/chain-export.ts'
import { eraseExported } from '../../audit/r2/exported-erasure.ts'
import type { ConsumerDatabase } from '../../audit/sql/database.ts'
import {
  beginErasure,
  endErasure,
  eraseRows,
  forgetDigests,
  nextErasure,
} from '../../audit/sql/erasure.ts'
import { deleteBefore } from '../../audit/sql/retention.ts'
import type { Digest } from '../../crypto/sha256.ts'

export interface Upkeep {
  readonly db: ConsumerDatabase
  /** Undefined: no export. */
  readonly bucket: ExportBucket | undefined
  readonly seal: CheckpointSealer
  /** Milliseconds since the epoch. */
  readonly nowMs: number
  /** Default: that of Web Crypto. */
  readonly digest?: Digest | undefined
}

/**
 * Maximum number of erasures in one run. A short erasure takes a few D1 queries. The next run
 * continues a long one.
 */
const MAX_ERASURES = 3

/**
 * Performs pending erasures, oldest first, as far as one run allows. A failed erasure remains
 * pending, and the next run retries it. Rejects with the error of D1 or R2.
 */
export async function carryOutErasures({ db, bucket, ...options }: Upkeep): Promise<void> {
  const { nowMs } = options
  for (let ended = 0; ended < MAX_ERASURES; ended += 1) {
    const next = await nextErasure(db)
    if (next === undefined) return
    const begun = await beginErasure(db, next, options)
    if (!(await eraseRows(db, begun, options))) return
    if (!(await eraseExported(db, bucket, begun, nowMs))) return
    if ((await db.scrub?.()) === false) return
    await endErasure(db, begun, options)
    // The order named the person until now.
    await db.scrub?.()
  }
}

/** Exports rows that are due; with `isRequested`, also others. Does nothing without a bucket. */
export async function exportDue({ db, bucket, nowMs }: Upkeep, isRequested = false): Promise<void> {
  if (bucket !== undefined) await exportChain(db, bucket, nowMs, isRequested)
}

/**
 * Deletes rows that are older than `beforeMs` (milliseconds since the epoch), and digests of old
 * erasures. With an export, only exported rows are deleted.
 */
export async function endRetention(
  { db, bucket, seal, nowMs }: Upkeep,
  beforeMs: number,
): Promise<void> {
  await forgetDigests(db, nowMs)
  await deleteBefore(db, beforeMs, { seal, nowMs, onlyExported: bucket !== undefined })
}
