/**
 * Verifies the hash chain of the audit trail. Computes every hash instead of trusting the gateway.
 */
import type { Missing } from '../src/audit/chain-ends.ts'
import {
  isOfFirstFormat,
  isWholeBlock,
  type RowState,
  type StoredBlock,
  type StoredRow,
  stateOf,
  wasAt,
} from './chain-hash.ts'

/** One inconsistency in a chain. */
export interface ChainFinding {
  /**
   * `changed`: a row was modified. `missing`: rows were removed. `moved`: a row is at the position
   * of another row. `checkpoint`: a checkpoint contradicts the rows or lacks a valid signature.
   * `head`: the end of the chain differs from the recorded end. `erasure`: more rows were erased
   * than the trail records.
   */
  readonly kind: 'changed' | 'missing' | 'moved' | 'checkpoint' | 'head' | 'erasure' | 'search'
  /** Position of the row or checkpoint. The first one if the finding covers several. */
  readonly seq: number
  readonly detail: string
}

/**
 * A range of missing rows. `previousHash` is the hash of the last missing row, as the row after the
 * gap records it.
 */
export type Gap = Missing

/** The previous hash of row 1: 32 zero bytes, base64url. */
const GENESIS_HASH = 'A'.repeat(43)
/** Maximum number of changed rows, and of positions, that are compared to find moved rows. */
const MAX_SUSPECTS = 200

/**
 * Creates a checker of the links between rows. It does no I/O and keeps the state of the rows so
 * far.
 */
export function createChainRows() {
  const gaps: Gap[] = []
  const broken: StoredRow[] = []
  const brokenBlocks: StoredBlock[] = []
  /** Rows with a correct hash that differs from the hash that their successor records. */
  let replaced: number[] = []
  let lastSeq = 0
  let link: unknown = GENESIS_HASH
  let seenCommitments = false
  /**
   * Erased rows of the first format that are not yet followed by a whole row of the same format.
   */
  let unproven: StoredRow[] = []
  const withoutProof: number[] = []

  function row(row: StoredRow): RowState {
    const seq = Number(row.seq)
    if (seq > lastSeq + 1) {
      gaps.push({ from: lastSeq + 1, to: seq - 1, previousHash: row.previous_hash })
      link = undefined
    }
    const isOlder = isOfFirstFormat(row)
    const state = isOlder && seenCommitments ? 'changed' : stateOf(row)
    seenCommitments ||= !isOlder
    if (isOlder && state === 'erased') {
      unproven.push(row)
      withoutProof.push(seq)
    } else if (isOlder && state === 'whole') unproven = []
    const whole = state !== 'changed' && seq !== lastSeq
    if (!whole) broken.push(row)
    else if (link !== undefined && row.previous_hash !== link) {
      // If both links of one row are broken, that row was replaced, not its neighbors.
      replaced =
        replaced.at(-1) === seq - 2
          ? [...replaced.slice(0, -1), seq - 1]
          : [...replaced, Math.max(seq - 1, 1)]
    }
    link = whole ? row.hash : undefined
    lastSeq = seq
    return state
  }

  function block(block: StoredBlock): boolean {
    const { first_seq, last_seq, previous_hash, hash } = block
    if (first_seq > lastSeq + 1) {
      gaps.push({ from: lastSeq + 1, to: first_seq - 1, previousHash: previous_hash })
      link = undefined
    }
    seenCommitments = true
    const whole = first_seq > lastSeq && isWholeBlock(block)
    if (!whole) brokenBlocks.push(block)
    else if (link !== undefined && previous_hash !== link)
      replaced = [...replaced, Math.max(first_seq - 1, 1)]
    link = whole ? hash : undefined
    lastSeq = Math.max(lastSeq, last_seq)
    return whole
  }

  function whereFrom(row: StoredRow): number | undefined {
    const places = [
      ...broken.map(({ seq }) => Number(seq)),
      ...gaps.flatMap(({ from, to }) => (from === to ? [from] : [])),
    ]
    return places.slice(0, MAX_SUSPECTS).find((seq) => wasAt(row, seq))
  }

  return {
    /** Adds the next row in `seq` order. Returns its state, without its links to other rows. */
    row,
    /** Adds the next block in the order of `first_seq`. Reports whether it is unchanged. */
    block,
    /**
     * Returns the last row; `seq` is 0 before the first row. `hash` is undefined if the row is
     * invalid.
     */
    last: (): { readonly seq: number; readonly hash: unknown } => ({ seq: lastSeq, hash: link }),
    gaps: (): readonly Gap[] => gaps,
    /** Returns the `seq` of erased rows of the first format, in order. Their hash cannot be computed. */
    withoutProof: (): readonly number[] => withoutProof,
    /** Returns all findings that follow from the rows alone. Call it after the last row. */
    findings: (): readonly ChainFinding[] => [
      ...replaced.map(
        (seq): ChainFinding => ({
          kind: 'changed',
          seq,
          detail: 'the next row has another hash of it',
        }),
      ),
      // The hash of these rows covers only erased columns. A whole row of the first format must
      // follow to prove that the format was in use. Otherwise any row could be disguised as an
      // erased one.
      ...unproven.map(
        ({ seq }): ChainFinding => ({
          kind: 'changed',
          seq: Number(seq),
          detail: 'it claims the first format, but no intact row of that format follows it',
        }),
      ),
      ...brokenBlocks.map(
        ({ first_seq, last_seq }): ChainFinding => ({
          kind: 'changed',
          seq: first_seq,
          detail: `the hash of the block of events ${first_seq} to ${last_seq} does not match`,
        }),
      ),
      ...broken.map((row, index): ChainFinding => {
        const from = index < MAX_SUSPECTS ? whereFrom(row) : undefined
        const seq = Number(row.seq)
        return from === undefined
          ? { kind: 'changed', seq, detail: 'its hash does not match' }
          : { kind: 'moved', seq, detail: `it was row ${from}` }
      }),
    ],
  }
}
