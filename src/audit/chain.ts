/**
 * The hash chain of the audit trail. The hash of a block covers its events and the hash of its
 * predecessor, so a changed, removed or moved event is detected. Pure: no I/O, no clock.
 */
import { CompactSign } from 'jose'
import { activeSigningKey, type KeyUse, type SigningJwk } from '../access/tokens/signing-keys.ts'
import { canonicalJson } from './chain-row.ts'

/** A place in a chain: the number of a row, from 1, and the row's hash. */
export interface ChainPlace {
  readonly seq: number
  readonly hash: string
}

/** A block of the chain: consecutive events with one hash. */
export interface Block {
  readonly first_seq: number
  readonly last_seq: number
  readonly previous_hash: string
  readonly hash: string
  /** The events, in their order. */
  readonly lines: readonly string[]
}

/** There is one chain. */
export const PARTITION = '0'

/** The place before the first row: 32 zero bytes, base64url. */
export const GENESIS: ChainPlace = { seq: 0, hash: 'A'.repeat(43) }

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

const AUDIT_KEYS: KeyUse = { variable: 'AUDIT_SIGNING_KEYS', dependency: 'audit_log' }

/**
 * Creates a function that signs a checkpoint with the key that is active at its time. Without keys
 * the checkpoint is unsigned. Rejects with `Unavailable`, and logs the variable, if no key signs at this time.
 */
export function createCheckpointSealer(keys: readonly SigningJwk[]): CheckpointSealer {
  return async function sealCheckpoint(kind, { seq, hash }, nowMs) {
    const statement = { partition: PARTITION, seq, kind, hash, time_ms: nowMs }
    if (keys.length === 0) return { ...statement, signature: null }
    const { kid, alg, privateKey } = await activeSigningKey(keys, nowMs, AUDIT_KEYS)
    const signature = await new CompactSign(new TextEncoder().encode(canonicalJson(statement)))
      .setProtectedHeader({ alg, kid, typ: CHECKPOINT_TYPE })
      .sign(privateKey)
    return { ...statement, signature }
  }
}
