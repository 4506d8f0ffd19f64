/**
 * The hash chain of the audit trail. The hash of a row covers the row and the hash of its
 * predecessor, so a changed, removed or moved row is detected. Pure: no I/O, no clock.
 */
import { sha256 } from '../crypto/sha256.ts'
import { type ChainRow, canonicalJson, told } from './chain-row.ts'
import { committed, PERSONAL_GROUPS } from './personal.ts'

/** A place in a chain: the number of a row, from 1, and the row's hash. */
export interface ChainPlace {
  readonly seq: number
  readonly hash: string
}

/** The chain that events are appended to. */
export const PARTITION = '0'

/** The place before the first row: 32 zero bytes, base64url. */
export const GENESIS: ChainPlace = { seq: 0, hash: 'A'.repeat(43) }

/** A row with its place. `previous_hash` is the hash of its predecessor, `hash` its own. */
export type ChainedRow = ChainRow & {
  readonly partition: string
  readonly seq: number
  readonly previous_hash: string
  readonly hash: string
}

/**
 * Version of the hash format, in the column `v`. Earlier rows have null there, and their hash
 * covers all columns.
 */
export const ROW_VERSION = 2

/**
 * Columns that a hash does not cover directly: the hashes, and the columns that commitments cover.
 */
const UNCOVERED = new Set([
  ...['previous_hash', 'hash', 'erasure'],
  ...PERSONAL_GROUPS.flatMap(({ salt, erased }) => [salt, ...Object.keys(erased)]),
])

/**
 * Returns the hash of a row that follows one with `previousHash`. It is the base64url SHA-256 of
 * that hash, a line feed, and the canonical JSON of the columns that are not null. The hash
 * excludes the hash columns, personal columns, their salts, and the id of an erasure.
 */
export const hashOf = (previousHash: string, row: ChainRow): Promise<string> =>
  sha256(`${previousHash}\n${canonicalJson(told(row, (name) => !UNCOVERED.has(name)))}`)

/**
 * Appends rows to the chain after a place, in their order. Returns the chained rows and the place
 * of the last one.
 */
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
