/** DPoP: verifies proofs of possession of the key that a token is bound to (RFC 9449). */

import { sha256 } from '../crypto/sha256.ts'
import { Denied, Misconfigured } from '../errors.ts'
import { type DpopClaims, dpopClaims } from '../validators/dpop.ts'
import { createProofKeys } from './dpop-key.ts'
import { createDpopNonces } from './dpop-nonce.ts'
import { asDpopRejection, dpopRejected } from './dpop-rejection.ts'
import { isTarget } from './dpop-target.ts'
import { readPayload, verifySignature } from './jws.ts'

export { nonceSecretOf } from './dpop-nonce.ts'

/** The result of verifying a proof. */
export interface DpopProof {
  /** base64url SHA-256 thumbprint of the proof's key (RFC 7638). Compare it with `cnf.jkt`. */
  readonly thumbprint: string
  /** Storage key that records the use of the proof: `pc:dpop:<hash>`. */
  readonly replayKey: string
  /** How long to keep the record, in seconds. After it, the proof is too old for every gateway. */
  readonly replayTtlSeconds: number
}

/** What a proof must be for. */
export interface DpopRequest {
  readonly method: string
  /** The URL of the request as it arrived. Its query and fragment are ignored. */
  readonly url: string
  /**
   * The values of all `DPoP` headers, joined by `, ` as the platform does. Undefined: no such
   * header.
   */
  readonly header: string | undefined
  /** The access token of the request (`ath`). Absent at the token endpoint. */
  readonly token?: string
}

export interface DpopVerifier {
  /**
   * Verifies a proof (RFC 9449 section 4.3). Throws `Denied`: `dpop_rejected`, or
   * `dpop_nonce_missing` with a valid nonce. Does NOT check that the proof is new, nor that its key
   * is the token's. The caller must do both, by `replayKey` and `thumbprint`.
   */
  verify(request: DpopRequest): Promise<DpopProof>
  /**
   * Returns a nonce for the client's next proofs (RFC 9449 section 8.2). Throws without a secret.
   */
  nonce(): Promise<string>
}

export interface DpopVerifierOptions {
  /** The URL of the gateway. Proofs must be for its origin. */
  readonly publicUrl: string
  /** The secret for nonces, the same in each gateway: `nonceSecretOf` the signing keys. */
  readonly nonceSecret: string | undefined
  /** Whether a proof without a nonce is refused. Requires a secret. */
  readonly nonceRequired: boolean
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

/** A proof arrives within milliseconds. The minute is for clients with a late clock. */
export const MAX_PROOF_AGE_SECONDS = 60
/** For clients with a clock that is ahead. */
export const MAX_PROOF_AHEAD_SECONDS = 5
/** The largest difference between the clocks of two gateways. */
const MAX_GATEWAY_SKEW_SECONDS = 15
/** From the first moment at which one gateway accepts a proof to the last at which another does. */
export const PROOF_REPLAY_TTL_SECONDS =
  MAX_PROOF_AHEAD_SECONDS + MAX_PROOF_AGE_SECONDS + MAX_GATEWAY_SKEW_SECONDS

/**
 * Creates the verifier of an isolate. It performs every check of RFC 9449 section 4.3 except two:
 * that a proof is new, and that its key is the token's. These need the store and the token, so the
 * caller performs them. Without a secret there are no nonces, and the nonce of a proof is ignored.
 * Throws `Misconfigured` if nonces are required without a secret.
 */
export function createDpopVerifier({
  publicUrl,
  nonceSecret,
  nonceRequired,
  now = Date.now,
}: DpopVerifierOptions): DpopVerifier {
  if (nonceRequired && nonceSecret === undefined) {
    throw new Misconfigured('The policy', ['tokens.dpopNonceRequired: needs SIGNING_KEYS'])
  }
  const publicOrigin = new URL(publicUrl).origin
  const keys = createProofKeys()
  const nonces = nonceSecret === undefined ? undefined : createDpopNonces(nonceSecret, now)

  /** Returns the claims of a proof with a verified signature, and the thumbprint of its key. */
  async function read(proof: string) {
    try {
      const proofKey = await keys.find(proof)
      await verifySignature(proof, proofKey.key)
      keys.keep(proof, proofKey)
      const parsed = dpopClaims.safeParse(readPayload(proof))
      if (parsed.success) return { claims: parsed.data, thumbprint: proofKey.thumbprint }
      throw dpopRejected(parsed.error.issues[0]?.path[0] as keyof DpopClaims)
    } catch (error) {
      throw asDpopRejection(error)
    }
  }

  async function refuseNonce(nonce: string | undefined): Promise<void> {
    if (nonces === undefined) return
    const isGood = nonce === undefined ? !nonceRequired : await nonces.accepts(nonce)
    if (isGood) return
    throw new Denied({ code: 'dpop_nonce_missing', nonce: await nonces.current() })
  }

  return {
    async verify({ method, url, header, token }) {
      if (header === undefined) throw dpopRejected('missing')
      if (header.includes(',')) throw dpopRejected('multiple')
      const { claims, thumbprint } = await read(header)
      if (claims.htm !== method) throw dpopRejected('htm')
      if (!isTarget(claims.htu, url, publicOrigin)) throw dpopRejected('htu')
      const ageSeconds = now() / 1000 - claims.iat
      if (ageSeconds > MAX_PROOF_AGE_SECONDS || ageSeconds < -MAX_PROOF_AHEAD_SECONDS) {
        throw dpopRejected('iat')
      }
      if (token !== undefined && claims.ath !== (await sha256(token))) throw dpopRejected('ath')
      await refuseNonce(claims.nonce)
      return {
        thumbprint,
        replayKey: `pc:dpop:${await sha256(JSON.stringify([thumbprint, claims.jti]))}`,
        replayTtlSeconds: PROOF_REPLAY_TTL_SECONDS,
      }
    },
    async nonce() {
      if (nonces === undefined) throw new Error('nonce: the verifier has no secret for nonces')
      return nonces.current()
    },
  }
}
