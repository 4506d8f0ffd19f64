/**
 * The chain of the audit trail: every row has a hash over its predecessor's hash and itself, so
 * whoever changes, removes or moves one leaves a trace. Pure: no I/O, no clock.
 */
import { sha256 } from '../tokens/sha256.ts'

/** A value of a row, as D1 keeps it. */
export type ChainValue = string | number | null

/** Columns of a row by name. */
export type ChainRow = Readonly<Record<string, ChainValue>>

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

/**
 * JSON with its names in the order of their UTF-16 code units and no white space: RFC 8785, for
 * flat objects of strings, finite numbers and null, which are all that a row holds.
 */
export function canonicalJson(row: ChainRow): string {
  const members = Object.keys(row)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${JSON.stringify(row[name])}`)
  return `{${members.join(',')}}`
}

/**
 * The hash of a row that follows one with `previousHash`: base64url SHA-256 of that hash, a line
 * feed, and the canonical JSON of all columns but the two of hashes.
 */
export const hashOf = (previousHash: string, row: ChainRow): Promise<string> =>
  sha256(`${previousHash}\n${canonicalJson(row)}`)

/** Chains rows behind a place, in their order. Returns them and the place of the last. */
export async function chainBehind(
  head: ChainPlace,
  rows: readonly ChainRow[],
): Promise<{ readonly rows: readonly ChainedRow[]; readonly head: ChainPlace }> {
  const chained: ChainedRow[] = []
  let { seq, hash } = head
  for (const row of rows) {
    const placed = { ...row, partition: PARTITION, seq: seq + 1 }
    const previous_hash = hash
    seq += 1
    hash = await hashOf(previous_hash, placed)
    chained.push({ ...placed, previous_hash, hash })
  }
  return { rows: chained, head: { seq, hash } }
}
