/** The key that a DPoP proof brings along. */
import { calculateJwkThumbprint, type JWK } from 'jose'
import { LRUCache } from 'lru-cache'
import { dpopHeader } from '../validators/dpop.ts'
import { refuseMalformed } from './bearer.ts'
import { dpopRejected } from './dpop-rejection.ts'
import { headerOf, readHeaderMembers } from './jws.ts'
import { importKeys, type VerificationKey } from './key-ring.ts'

/** A public key that says of itself that it verifies the proof. */
export interface ProofKey {
  /** base64url SHA-256 thumbprint (RFC 7638). */
  readonly thumbprint: string
  readonly key: VerificationKey
}

export interface ProofKeys {
  /**
   * Reads a proof's protected header and imports its key: public, asymmetric, for exactly the
   * proof's algorithm, and as sound as keys of issuers must be (see `sortKeys`); RSA keys have at most
   * 4096 bits. Throws `Denied`, in part that of a token. Does NOT verify the signature.
   */
  find(proof: string): Promise<ProofKey>
  /** Remembers the key of a proof whose signature is good. */
  keep(proof: string, key: ProofKey): void
}

/** Clients that an isolate sees in a while; each has one key. */
const MAX_KEYS = 500
/** The header with an RSA key of 4096 bits has 1,100. */
const MAX_KEPT_CHARS = 1_536

/**
 * Finds the keys of proofs. The header of a client's proofs is the same text each time, so its key is
 * remembered by that text: reading and importing it costs most of what the signature does. Only keys
 * that signed something are kept, and no verdict is: not even a good signature.
 */
export function createProofKeys(): ProofKeys {
  const kept = new LRUCache<string, ProofKey>({ max: MAX_KEYS })
  return {
    async find(proof) {
      refuseMalformed(proof)
      return kept.get(headerTextOf(proof)) ?? read(proof)
    },
    keep(proof, key) {
      const header = headerTextOf(proof)
      if (header.length <= MAX_KEPT_CHARS) kept.set(header, key)
    },
  }
}

function headerTextOf(proof: string): string {
  return proof.slice(0, proof.indexOf('.'))
}

async function read(proof: string): Promise<ProofKey> {
  const members = readHeaderMembers(proof)
  headerOf(members)
  const parsed = dpopHeader.safeParse(members)
  if (!parsed.success) {
    throw dpopRejected(parsed.error.issues[0]?.path[0] as 'typ' | 'alg' | 'jwk')
  }
  const { alg, jwk } = parsed.data
  const imported = await importKeys({ keys: [jwk] }, [alg])
  const [key] = imported?.ring ?? []
  if (key === undefined) throw dpopRejected(`jwk_${imported?.ignored[0]?.check ?? 'set'}`)
  return { thumbprint: await calculateJwkThumbprint(jwk as JWK, 'sha256'), key }
}
