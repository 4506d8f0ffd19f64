/**
 * Signed checkpoints: statements about the chain at one moment, which only the holder of the key
 * can sign.
 */
import { CompactSign } from 'jose'
import { activeKey, importSigningKey, type SigningJwk } from '../tokens/signing-keys.ts'
import { type ChainPlace, PARTITION } from './chain.ts'
import { canonicalJson } from './chain-row.ts'

/**
 * `sealed`: the chain ended with this row, and the row had this hash. `pruned`: this was the last
 * row that retention deleted, and the chain continues after it.
 */
export type CheckpointKind = 'sealed' | 'pruned'

/** A row of `audit_checkpoints`. */
export interface Checkpoint extends ChainPlace {
  readonly partition: string
  readonly kind: CheckpointKind
  /** Milliseconds since the epoch. */
  readonly time_ms: number
  /** Compact JWS (RFC 7515) over the other columns as canonical JSON; null without a key. */
  readonly signature: string | null
}

/** The `typ` of the JWS. No other statement that the same key signs is accepted as a checkpoint. */
export const CHECKPOINT_TYPE = 'portcullis-checkpoint+jws'

/** Seals the chain after this number of events. */
export const EVENTS_PER_CHECKPOINT = 1_000
/**
 * Seals the chain with the first batch after this interval, in milliseconds, if that is earlier.
 */
export const CHECKPOINT_INTERVAL_MS = 60_000

/**
 * Creates a checkpoint, signed with the key that is active at its time. Without a key the
 * checkpoint is unsigned.
 */
export type CheckpointSealer = (
  kind: CheckpointKind,
  place: ChainPlace,
  nowMs: number,
) => Promise<Checkpoint>

/**
 * Creates a sealer with these keys. The sealer rejects with `Misconfigured` if a key is not valid.
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
