/** The chain of the audit trail, as the command line computes it: it takes no gateway's word. */
import { isOfFirstFormat, type RowState, type StoredRow, stateOf, wasAt } from './chain-hash.ts'

/** What is wrong with a chain. */
export interface ChainFinding {
  /**
   * `changed`: a row is not what it was. `missing`: rows are gone. `moved`: a row stands where
   * another belongs. `checkpoint`: one says otherwise, or is not signed as it should be. `head`:
   * the end of the chain is not where it is said to be. `erasure`: more was erased than the trail
   * says.
   */
  readonly kind: 'changed' | 'missing' | 'moved' | 'checkpoint' | 'head' | 'erasure'
  /** Of the row or the checkpoint; the first one of several. */
  readonly seq: number
  readonly detail: string
}

/** Rows that are not there. `previousHash` is what the row behind them says of the last one. */
export interface Gap {
  readonly from: number
  readonly to: number
  readonly previousHash: unknown
}

export interface ChainRows {
  /** Takes the next row in the order of `seq`. Returns what it is by itself. */
  row(row: StoredRow): RowState
  /** Where the rows end: `seq` 0 before the first. `hash` is undefined where it cannot be trusted. */
  last(): { readonly seq: number; readonly hash: unknown }
  gaps(): readonly Gap[]
  /** All that rows by themselves tell. Call it after the last one. */
  findings(): readonly ChainFinding[]
}

/** What precedes row 1: 32 zero bytes, base64url. */
const GENESIS_HASH = 'A'.repeat(43)
/** Where a row has gone is looked for among as many; more are a different chain. */
const MAX_SUSPECTS = 200

/** Checks the links between rows. Pure but for what it has seen. */
export function createChainRows(): ChainRows {
  const gaps: Gap[] = []
  const broken: StoredRow[] = []
  /** Rows whose own hash is right, and whose successor knows another one. */
  let replaced: number[] = []
  let lastSeq = 0
  let link: unknown = GENESIS_HASH
  let seenCommitments = false
  /** Erased rows of the first format that no whole one has come behind yet. */
  let unproven: StoredRow[] = []

  function row(row: StoredRow): RowState {
    const seq = Number(row.seq)
    if (seq > lastSeq + 1) {
      gaps.push({ from: lastSeq + 1, to: seq - 1, previousHash: row.previous_hash })
      link = undefined
    }
    const isOlder = isOfFirstFormat(row)
    const state = isOlder && seenCommitments ? 'changed' : stateOf(row)
    seenCommitments ||= !isOlder
    if (isOlder && state === 'erased') unproven.push(row)
    else if (isOlder && state === 'whole') unproven = []
    const whole = state !== 'changed' && seq !== lastSeq
    if (!whole) broken.push(row)
    else if (link !== undefined && row.previous_hash !== link) {
      // Both links of one row are broken: that row was replaced, not its neighbours.
      replaced =
        replaced.at(-1) === seq - 2
          ? [...replaced.slice(0, -1), seq - 1]
          : [...replaced, Math.max(seq - 1, 1)]
    }
    link = whole ? row.hash : undefined
    lastSeq = seq
    return state
  }

  function whereFrom(row: StoredRow): number | undefined {
    const places = [
      ...broken.map(({ seq }) => Number(seq)),
      ...gaps.flatMap(({ from, to }) => (from === to ? [from] : [])),
    ]
    return places.slice(0, MAX_SUSPECTS).find((seq) => wasAt(row, seq))
  }

  return {
    row,
    last: () => ({ seq: lastSeq, hash: link }),
    gaps: () => gaps,
    findings: () => [
      ...replaced.map(
        (seq): ChainFinding => ({
          kind: 'changed',
          seq,
          detail: 'its successor knows another hash of it',
        }),
      ),
      // Their hash covers nothing that is left. That there were rows of this format at all takes one
      // with a hash that is right, or any row could be passed off as one of them.
      ...unproven.map(
        ({ seq }): ChainFinding => ({
          kind: 'changed',
          seq: Number(seq),
          detail: 'it says it is of the first format, and no whole row of that comes behind it',
        }),
      ),
      ...broken.map((row, index): ChainFinding => {
        const from = index < MAX_SUSPECTS ? whereFrom(row) : undefined
        const seq = Number(row.seq)
        return from === undefined
          ? { kind: 'changed', seq, detail: 'it does not have its hash' }
          : { kind: 'moved', seq, detail: `it was row ${from}` }
      }),
    ],
  }
}
