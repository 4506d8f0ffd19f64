/** What a chain of the audit trail must begin and end with. Pure: no I/O. */

/** A place in a chain. `hash` is undefined or null if it is not known. */
interface Place {
  readonly seq: number
  readonly hash: unknown
}

/** Rows of a chain that are missing. `previousHash` is that of the row after them. */
export interface Missing {
  readonly from: number
  readonly to: number
  readonly previousHash: unknown
}

/**
 * Returns what is wrong with missing rows. Rows up to `gone` may be missing, and the row after the last `pruned` one
 * must have its hash.
 */
export function faultOfGap(
  { to, previousHash }: Missing,
  gone: number,
  pruned: Place | undefined,
): 'missing' | 'pruned' | undefined {
  if (to > gone) return 'missing'
  return to === pruned?.seq && previousHash !== pruned.hash ? 'pruned' : undefined
}

/** Compares the last row with the recorded end. A recorded end after the last row is a gap, and no fault here. */
export function faultOfEnd(
  head: Place | null,
  last: Place,
): 'unrecorded' | 'continues' | 'changed' | undefined {
  if (last.seq === 0) return undefined
  if (head === null) return 'unrecorded'
  if (head.seq < last.seq) return 'continues'
  return head.seq === last.seq && last.hash !== undefined && head.hash !== last.hash
    ? 'changed'
    : undefined
}
