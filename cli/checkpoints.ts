/** Compares checkpoints of the audit trail with its rows, and verifies their signatures. */
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose'
import type { ChainFinding } from './chain.ts'
import { canonical, type StoredRow } from './chain-hash.ts'

const TYPE = 'portcullis-checkpoint+jws'
/**
 * Public members of a JWK. Private members are dropped, so an operator can pass a private key file.
 */
const PUBLIC_MEMBERS = ['kty', 'crv', 'x', 'y', 'n', 'e', 'kid', 'alg']

/**
 * Parses a JWK Set of public or private keys, and returns the public members. Throws if the text is
 * not a JWK Set, or has no keys.
 */
export function publicKeysIn(text: string): JSONWebKeySet {
  const { keys } = JSON.parse(text) as { readonly keys: readonly Record<string, unknown>[] }
  const members = keys.map((key) =>
    Object.fromEntries(PUBLIC_MEMBERS.flatMap((name) => (name in key ? [[name, key[name]]] : []))),
  )
  if (members.length === 0) throw new Error('no keys')
  const set = { keys: members } as unknown as JSONWebKeySet
  createLocalJWKSet(set)
  return set
}

/**
 * Creates a checker of checkpoints. Without `keys`, it ignores signatures. With `keys`, at least
 * one checkpoint must have a valid signature.
 */
export function createCheckpoints(keys: JSONWebKeySet | undefined) {
  const keySet = keys && createLocalJWKSet(keys)
  const findings: ChainFinding[] = []
  const orphans: number[] = []
  let pruned: { seq: number; hash: unknown } | undefined
  const signed: number[] = []
  let checkpoints = 0

  const complain = (seq: number, detail: string) =>
    void findings.push({ kind: 'checkpoint', seq, detail })

  async function isSigned({ signature, ...statement }: StoredRow): Promise<boolean> {
    if (keySet === undefined || typeof signature !== 'string') return false
    try {
      const { payload, protectedHeader } = await compactVerify(signature, keySet)
      const said = new TextDecoder().decode(payload)
      return protectedHeader.typ === TYPE && said === canonical(statement)
    } catch {
      return false
    }
  }

  return {
    /**
     * Adds the next checkpoint in `seq` order. `hash` is the hash of its row, or undefined if the row
     * is missing.
     */
    async checkpoint(checkpoint: StoredRow, hash: unknown): Promise<void> {
      const seq = Number(checkpoint.seq)
      const isPruned = checkpoint.kind === 'pruned'
      checkpoints += 1
      if (await isSigned(checkpoint)) {
        signed.push(seq)
      } else if (keys !== undefined) {
        if (checkpoint.signature !== null) complain(seq, 'its signature is not valid')
        // A chain can be older than its first key, but once signing starts, every checkpoint must
        // be signed.
        else if (isPruned || signed.length > 0) complain(seq, 'it is not signed')
      }
      if (isPruned) pruned = { seq, hash: checkpoint.hash }
      if (hash === undefined) {
        if (!isPruned) orphans.push(seq)
      } else if (hash !== checkpoint.hash) complain(seq, 'its row has another hash')
    },
    /** Returns the last row that retention deleted, or undefined if no rows were deleted. */
    pruned: (): { readonly seq: number; readonly hash: unknown } | undefined => pruned,
    /** Returns the `seq` of checkpoints without a row. */
    orphans: (): readonly number[] => orphans,
    counts: (): { readonly checkpoints: number; readonly signed: number } => ({
      checkpoints,
      signed: signed.length,
    }),
    /** Returns the `seq` of the last row that a valid signature covers, or 0. */
    sealed: (): number => signed.reduce((most, seq) => Math.max(most, seq), 0),
    /** Returns the `seq` of each checkpoint with a valid signature, in order. */
    signed: (): readonly number[] => signed,
    /** Returns all findings. Call it after the last checkpoint. */
    findings: (): readonly ChainFinding[] =>
      keys !== undefined && signed.length === 0
        ? [
            ...findings,
            { kind: 'checkpoint', seq: 0, detail: 'no checkpoint is signed with these keys' },
          ]
        : findings,
  }
}
