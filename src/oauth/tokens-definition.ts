/** The part of a policy that says how the gateway issues tokens. */

/** What the gateway's own tokens are like. */
export interface TokensDefinition {
  /** Life of an access token, 300 to 3,600. Default 900. */
  readonly accessTokenSeconds?: number
  /**
   * Life of a session, however often it is refreshed: 60 to 31,536,000. Default 2,592,000 (30
   * days).
   */
  readonly sessionSeconds?: number
  /** How long a refresh may be retried with the token it used up, 0 to 60. Default 10. */
  readonly refreshGraceSeconds?: number
  /**
   * Refuses DPoP proofs without a nonce of the gateway (RFC 9449 sections 8 and 9). Default false.
   */
  readonly dpopNonceRequired?: boolean
}

/** What holds where a policy says nothing. */
export const DEFAULT_TOKENS: Required<TokensDefinition> = {
  accessTokenSeconds: 900,
  sessionSeconds: 2_592_000,
  refreshGraceSeconds: 10,
  dpopNonceRequired: false,
}
