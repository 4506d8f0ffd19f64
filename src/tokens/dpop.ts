/** DPoP: proofs that a caller holds the key which its token is bound to (RFC 9449). */
import { Denied, Misconfigured } from '../errors.ts'
import { type DpopClaims, dpopClaims } from '../validators/dpop.ts'
import { createProofKeys } from './dpop-key.ts'
import { createDpopNonces } from './dpop-nonce.ts'
import { asDpopRejection, dpopRejected } from './dpop-rejection.ts'
import { isTarget } from './dpop-target.ts'
import { readPayload, verifySignature } from './jws.ts'
import { sha256 } from './sha256.ts'

export { nonceSecretOf } from './dpop-nonce.ts'

/** What a good proof says. */
export interface DpopProof {
  /** base64url SHA-256 thumbprint of the proof's key (RFC 7638): to compare with `cnf.jkt`. */
  readonly thumbprint: string
  /** Storage key under which the proof's use is to be remembered: `pc:dpop:<hash>`. */
  readonly replayKey: string
  /** For how long; afterwards the proof is too old for every gateway. */
  readonly replayTtlSeconds: number
}

/** What a proof must be for. */
export interface DpopRequest {
  readonly method: string
  /** The URL of the request as it arrived; its query and fragment do not count. */
  readonly url: string
  /** The values of all `DPoP` headers, joined by `, ` as the platform does; undefined: none. */
  readonly header: string | undefined
  /** The access token that the request presents (`ath`); left out at the token endpoint. */
  readonly token?: string
}

export interface DpopVerifier {
  /**
   * Checks a proof (RFC 9449 section 4.3). Throws `Denied`: `dpop_rejected`, or
   * `dpop_nonce_missing` with a good nonce. Does NOT check that the proof is new, nor that its key
   * is the token's: that is for the caller, by `replayKey` and `thumbprint`.
   */
  verify(request: DpopRequest): Promise<DpopProof>
  /** A nonce for the client's next proofs (RFC 9449 section 8.2). Throws without a secret. */
  nonce(): Promise<string>
}

export interface DpopVerifierOptions {
  /** The origin that proofs must be for. */
  readonly publicUrl: string
  /** What nonces are made with, the same in each gateway: `nonceSecretOf` the signing keys. */
  readonly nonceSecret: string | undefined
  /** Whether a proof without a nonce is refused. Needs a secret. */
  readonly nonceRequired: boolean
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

/** Milliseconds are enough for a proof to arrive; a minute is for clients whose clock is late. */
export const MAX_PROOF_AGE_SECONDS = 60
/** For clients whose clock is ahead. */
export const MAX_PROOF_AHEAD_SECONDS = 5
/** How far the clocks of two gateways may be apart. */
const MAX_GATEWAY_SKEW_SECONDS = 15
/** From the first moment at which one gateway takes a proof to the last at which another does. */
export const PROOF_REPLAY_TTL_SECONDS =
  MAX_PROOF_AHEAD_SECONDS + MAX_PROOF_AGE_SECONDS + MAX_GATEWAY_SKEW_SECONDS

/**
 * Makes the verifier of an isolate. Every check of RFC 9449 section 4.3 but two is its own: that a
 * proof is new, and that its key is the token's, are for whoever has the store and the token. Without
 * a secret there are no nonces, and one that a proof brings is not looked at. Throws `Misconfigured`
 * if nonces are required then.
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

  /** The claims of a proof whose signature is good, and the thumbprint of its key. */
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
