/**
 * The hash chain of the audit trail. The hash of a row covers the row and the hash of its
 * predecessor, so a changed, removed or moved row is detected. Pure: no I/O, no clock.
 */
import { CompactSign } from 'jose'
import { activeKey, importSigningKey, type SigningJwk } from '../access/tokens/signing-keys.ts'
import { type Digest, sha256 } from '../crypto/sha256.ts'
import { type ChainRow, canonicalColumns, canonicalJson } from './chain-row.ts'
import { committed, PERSONAL_GROUPS } from './personal.ts'

/** A place in a chain: the number of a row, from 1, and the row's hash. */
export interface ChainPlace {
  readonly seq: number
  readonly hash: string
}

/** There is one chain. */
export const PARTITION = '0'

/** The place before the first row: 32 zero bytes, base64url. */
export const GENESIS: ChainPlace = { seq: 0, hash: 'A'.repeat(43) }

/** Version of the hash format. Earlier rows have null there, and their hash covers all columns. */
const ROW_VERSION = 2

/** Columns that a hash does not cover directly: the hashes, and what commitments cover. */
const UNCOVERED = new Set([
  ...['previous_hash', 'hash', 'erasure'],
  ...PERSONAL_GROUPS.flatMap(({ salt, erased }) => [salt, ...Object.keys(erased)]),
])

/** Returns the columns that the hash of a row covers directly, in the order of canonical JSON. */
function coveredColumns(row: ChainRow): readonly string[] {
  return Object.keys(row)
    .filter((name) => !UNCOVERED.has(name))
    .sort()
}

/**
 * Chains rows after a place, in their order. Returns them and the place of the last one. All rows have
 * the columns of the first one. The hash of a row is the SHA-256 of the previous row's hash, a line feed,
 * and the canonical JSON of the covered columns that are not null.
 */
export async function chainBehind(
  head: ChainPlace,
  rows: readonly ChainRow[],
  digest: Digest = sha256,
): Promise<{ readonly rows: readonly ChainRow[]; readonly head: ChainPlace }> {
  const chained: ChainRow[] = []
  let { seq, hash } = head
  let names: readonly string[] | undefined
  for (const row of rows) {
    seq += 1
    const place = { v: ROW_VERSION, partition: PARTITION, seq, previous_hash: hash, hash }
    const placed = Object.assign(await committed(row, digest), place)
    names ??= coveredColumns(placed)
    const given = digest(`${hash}\n${canonicalColumns(placed, names)}`)
    hash = typeof given === 'string' ? given : await given
    placed.hash = hash
    chained.push(placed)
  }
  return { rows: chained, head: { seq, hash } }
}

/**
 * `sealed`: the chain ended with this row, and the row had this hash. `pruned`: this was the last
 * row that retention deleted, and the chain continues after it.
 */
type CheckpointKind = 'sealed' | 'pruned'

/** A row of `audit_checkpoints`. */
export interface Checkpoint extends ChainPlace {
  readonly partition: string
  readonly kind: CheckpointKind
  readonly time_ms: number
  /** Compact JWS (RFC 7515) over the other columns as canonical JSON; null without a key. */
  readonly signature: string | null
}

/** The `typ` of the JWS. No other statement that the same key signs is accepted as a checkpoint. */
const CHECKPOINT_TYPE = 'portcullis-checkpoint+jws'

export type CheckpointSealer = (
  kind: CheckpointKind,
  place: ChainPlace,
  nowMs: number,
) => Promise<Checkpoint>

/**
 * Creates a function that signs a checkpoint with the key that is active at its time. Without a key
 * the checkpoint is unsigned. Rejects with `Misconfigured` if a key is not valid.
 */
export function createCheckpointSealer(keys: readonly SigningJwk[]): CheckpointSealer {
  return async function sealCheckpoint(kind, { seq, hash }, nowMs) {
    const statement = { partition: PARTITION, seq, kind, hash, time_ms: nowMs }
    const jwk = activeKey(keys, nowMs)
    if (jwk === undefined) return { ...statement, signature: null }
    const { kid, alg, privateKey } = await importSigningKey(jwk)
    const signature = await new CompactSign(new TextEncoder().encode(canonicalJson(statement)))
      .setProtectedHeader({ alg, kid, typ: CHECKPOINT_TYPE })
      .sign(privateKey)
    return { ...statement, signature }
  }
}
