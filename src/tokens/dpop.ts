/** DPoP: proofs that a caller holds the key which its token is bound to (RFC 9449). */
import { Denied } from '../errors.ts'

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

/** Makes the verifier of an isolate. */
export function createDpopVerifier(_options: DpopVerifierOptions): DpopVerifier {
  return {
    async verify() {
      throw new Denied({ code: 'dpop_rejected', check: 'missing' })
    },
    nonce: async () => '',
  }
}
