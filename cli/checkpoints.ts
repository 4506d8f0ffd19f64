/** Checkpoints of the audit trail, compared with its rows, and their signatures with keys. */
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose'
import type { ChainFinding } from './chain.ts'
import { canonical, type StoredRow } from './chain-hash.ts'

export interface Checkpoints {
  /** Takes one, and the hash of its row, if that is there. In the order of `seq`. */
  checkpoint(checkpoint: StoredRow, hash: unknown): Promise<void>
  /** Where the rows begin whose retention has not ended; undefined if none were deleted. */
  pruned(): { readonly seq: number; readonly hash: unknown } | undefined
  /** Checkpoints whose rows are not there. */
  orphans(): readonly number[]
  counts(): { readonly checkpoints: number; readonly signed: number }
  /** `seq` of the last row that a good signature vouches for; 0 for none. */
  sealed(): number
  /** Call it after the last one. */
  findings(): readonly ChainFinding[]
}

const TYPE = 'portcullis-checkpoint+jws'
/** Private members of JWKs are left out: an operator's own file of keys will do. */
const PUBLIC_MEMBERS = ['kty', 'crv', 'x', 'y', 'n', 'e', 'kid', 'alg']

/** Keys of a file, public or private. Throws where it is no JWK Set. */
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

/** Without `keys`, signatures are not looked at. With them, there has to be one. */
export function createCheckpoints(keys: JSONWebKeySet | undefined): Checkpoints {
  const keySet = keys && createLocalJWKSet(keys)
  const findings: ChainFinding[] = []
  const orphans: number[] = []
  let pruned: { seq: number; hash: unknown } | undefined
  let [checkpoints, signed, sealed] = [0, 0, 0]

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
    async checkpoint(checkpoint, hash) {
      const seq = Number(checkpoint.seq)
      const isPruned = checkpoint.kind === 'pruned'
      checkpoints += 1
      if (await isSigned(checkpoint)) {
        signed += 1
        sealed = Math.max(sealed, seq)
      } else if (keys !== undefined) {
        if (checkpoint.signature !== null) complain(seq, 'its signature is not good')
        // Keys may be younger than the chain, but whoever has begun to sign goes on.
        else if (isPruned || signed > 0) complain(seq, 'it is not signed')
      }
      if (isPruned) pruned = { seq, hash: checkpoint.hash }
      if (hash === undefined) {
        if (!isPruned) orphans.push(seq)
      } else if (hash !== checkpoint.hash) complain(seq, 'its row has another hash')
    },
    pruned: () => pruned,
    orphans: () => orphans,
    counts: () => ({ checkpoints, signed }),
    sealed: () => sealed,
    findings: () =>
      keys !== undefined && signed === 0
        ? [...findings, { kind: 'checkpoint', seq: 0, detail: 'none is signed with these keys' }]
        : findings,
  }
}
