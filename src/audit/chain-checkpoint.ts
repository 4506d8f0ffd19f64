/** Statements about a chain at one moment, signed so that only the key's holder can make them. */
import { CompactSign } from 'jose'
import { activeKey, importSigningKey, type SigningJwk } from '../tokens/signing-keys.ts'
import { type ChainPlace, PARTITION } from './chain.ts'
import { canonicalJson } from './chain-row.ts'

/**
 * `sealed`: the chain went as far as this row, and the row had this hash. `pruned`: it was the
 * last of the rows whose retention has ended, and the chain goes on behind it.
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

/** `typ` of the JWS: nothing else that the same key may have signed is taken for a checkpoint. */
export const CHECKPOINT_TYPE = 'portcullis-checkpoint+jws'

/** A chain is sealed after as many events, */
export const EVENTS_PER_CHECKPOINT = 1_000
/** or with the first batch after as many milliseconds, whichever is earlier. */
export const CHECKPOINT_INTERVAL_MS = 60_000

/** Makes checkpoints with the key that signs at their time; without one, they are unsigned. */
export type CheckpointSealer = (
  kind: CheckpointKind,
  place: ChainPlace,
  nowMs: number,
) => Promise<Checkpoint>

/** A sealer with these keys. Rejects with `Misconfigured` where a key is not what it says. */
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
