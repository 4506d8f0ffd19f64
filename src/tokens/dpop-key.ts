/** The key that a DPoP proof brings along. */
import { calculateJwkThumbprint, type JWK } from 'jose'
import { dpopHeader } from '../validators/dpop.ts'
import { dpopRejected } from './dpop-rejection.ts'
import { headerOf, readHeaderMembers } from './jws.ts'
import { importKeys, type VerificationKey } from './key-ring.ts'

/** A public key that says of itself that it verifies the proof. */
export interface ProofKey {
  /** base64url SHA-256 thumbprint (RFC 7638). */
  readonly thumbprint: string
  readonly key: VerificationKey
}

/**
 * Reads a proof's protected header and imports its key: public, asymmetric, for exactly the proof's
 * algorithm, and as sound as keys of issuers must be (see `sortKeys`); RSA keys have at most 4096
 * bits. Throws `Denied`, in part that of a token. Does NOT verify the signature.
 */
export async function proofKeyOf(proof: string): Promise<ProofKey> {
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
