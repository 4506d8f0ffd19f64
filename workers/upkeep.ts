/** What the audit Worker does beside taking events: erasures, the export, and what is too old. */
import type { CheckpointSealer } from '../src/audit/chain-checkpoint.ts'
import {
  beginErasure,
  endErasure,
  eraseRows,
  forgetDigests,
  nextErasure,
} from '../src/stores/d1/erasure.ts'
import { deleteBefore } from '../src/stores/d1/retention.ts'
import type { ExportBucket } from '../src/stores/r2/bucket.ts'
import { exportChain } from '../src/stores/r2/chain-export.ts'
import { eraseExported } from '../src/stores/r2/exported-erasure.ts'

export interface Upkeep {
  readonly db: D1Database
  /** Undefined: nothing is exported. */
  readonly bucket: ExportBucket | undefined
  readonly seal: CheckpointSealer
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}

/** Each is a few D1 queries, or more of one that is long; the next run goes on. */
const MAX_ERASURES = 3

/**
 * Carries out orders of erasure, the oldest first, as far as one run goes. An order that fails stays
 * where it is and is tried again. Rejects with what D1 or R2 said.
 */
export async function carryOutErasures({ db, bucket, seal, nowMs }: Upkeep): Promise<void> {
  const options = { seal, nowMs }
  for (let ended = 0; ended < MAX_ERASURES; ended += 1) {
    const next = await nextErasure(db)
    if (next === null) return
    const begun = await beginErasure(db, next, options)
    if (!(await eraseRows(db, begun))) return
    if (!(await eraseExported(db, bucket, begun, nowMs))) return
    await endErasure(db, begun, options)
  }
}

/** Exports what is due; `isAsked`: also what is not. Nothing without a bucket. */
export async function exportDue({ db, bucket, nowMs }: Upkeep, isAsked = false): Promise<void> {
  if (bucket !== undefined) await exportChain({ db, bucket, nowMs, isAsked })
}

/**
 * Ends the life of what is from before `beforeMs` (milliseconds since the epoch). Where there is an
 * export, rows go once they are in it.
 */
export async function endRetention(
  { db, bucket, seal, nowMs }: Upkeep,
  beforeMs: number,
): Promise<void> {
  await forgetDigests(db, nowMs)
  await deleteBefore(db, beforeMs, { seal, nowMs, onlyExported: bucket !== undefined })
}
