/** Algorithms of DPoP proofs (RFC 9449 section 4.2): asymmetric only. */
export const DPOP_ALGORITHMS = ['ES256', 'Ed25519', 'EdDSA', 'RS256', 'PS256'] as const
