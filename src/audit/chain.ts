/**
 * The chain of the audit trail: every row has a hash over its predecessor's hash and itself, so
 * whoever changes, removes or moves one leaves a trace. Pure: no I/O, no clock.
 */
import { sha256 } from '../tokens/sha256.ts'
import { type ChainRow, canonicalJson, told } from './chain-row.ts'
import { committed, PERSONAL_GROUPS } from './personal.ts'

/** A place in a chain: the number of a row, from 1 on, and the row's hash. */
export interface ChainPlace {
  readonly seq: number
  readonly hash: string
}

/** The chain that events go to. */
export const PARTITION = '0'

/** What precedes the first row: 32 zero bytes, base64url. */
export const GENESIS: ChainPlace = { seq: 0, hash: 'A'.repeat(43) }

/** A row with its place. `previous_hash` is its predecessor's, `hash` its own. */
export type ChainedRow = ChainRow & {
  readonly partition: string
  readonly seq: number
  readonly previous_hash: string
  readonly hash: string
}

/** How rows are hashed, in their column `v`. Those of before have null there, and covered all. */
export const ROW_VERSION = 2

/** Columns that a hash does not cover itself: hashes, and what there are commitments to. */
const UNCOVERED = new Set([
  ...['previous_hash', 'hash', 'erasure'],
  ...PERSONAL_GROUPS.flatMap(({ salt, erased }) => [salt, ...Object.keys(erased)]),
])

/**
 * The hash of a row that follows one with `previousHash`: base64url SHA-256 of that hash, a line
 * feed, and the canonical JSON of all columns that are not null, but those of hashes, those that
 * are about somebody, and those that came with them.
 */
export const hashOf = (previousHash: string, row: ChainRow): Promise<string> =>
  sha256(`${previousHash}\n${canonicalJson(told(row, (name) => !UNCOVERED.has(name)))}`)

/** Chains rows behind a place, in their order. Returns them and the place of the last. */
export async function chainBehind(
  head: ChainPlace,
  rows: readonly ChainRow[],
): Promise<{ readonly rows: readonly ChainedRow[]; readonly head: ChainPlace }> {
  const chained: ChainedRow[] = []
  let { seq, hash } = head
  for (const row of rows) {
    const columns = await committed(row)
    const placed = { ...columns, v: ROW_VERSION, partition: PARTITION, seq: seq + 1 }
    const previous_hash = hash
    seq += 1
    hash = await hashOf(previous_hash, placed)
    chained.push({ ...placed, previous_hash, hash })
  }
  return { rows: chained, head: { seq, hash } }
}
