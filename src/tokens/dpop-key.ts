/** Finds the key that a DPoP proof contains. */
import { calculateJwkThumbprint, type JWK } from 'jose'
import { LRUCache } from 'lru-cache'
import { dpopHeader } from '../validators/dpop.ts'
import { refuseMalformed } from './bearer.ts'
import { dpopRejected } from './dpop-rejection.ts'
import { headerOf, readHeaderMembers } from './jws.ts'
import { importKeys, type VerificationKey } from './key-ring.ts'

/** A public key from the header of a proof. */
export interface ProofKey {
  /** base64url SHA-256 thumbprint (RFC 7638). */
  readonly thumbprint: string
  readonly key: VerificationKey
}

export interface ProofKeys {
  /**
   * Reads a proof's protected header and imports its key. The key must be public, asymmetric, for
   * exactly the proof's algorithm, and as strong as keys of issuers must be (see `sortKeys`). RSA
   * keys have at most 4096 bits. Throws `Denied`, with `token_rejected` for some of the failures.
   * Does NOT verify the signature.
   */
  find(proof: string): Promise<ProofKey>
  /** Caches the key of a proof with a verified signature. */
  keep(proof: string, key: ProofKey): void
}

/** An estimate of the clients that an isolate serves at a time. Each has one key. */
const MAX_KEYS = 500
/** The header with an RSA key of 4096 bits has 1,100. */
const MAX_KEPT_CHARS = 1_536

/**
 * Creates a cache of proof keys. All proofs of a client have the same header text, so the key is
 * cached by that text. Parsing and importing a key costs almost as much as verifying the signature.
 * Only keys with a verified signature are cached. Results of verification are NOT cached.
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
