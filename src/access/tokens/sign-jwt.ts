import { type CompactJWSHeaderParameters, CompactSign, type CryptoKey } from 'jose'

/**
 * Signs claims as a JWT (RFC 7519). Claims that are undefined are absent. Does NOT check claims. `SignJWT` would add
 * its parser of durations and dates to each bundle.
 */
export const signJwt = (
  claims: object,
  header: CompactJWSHeaderParameters,
  key: CryptoKey,
): Promise<string> =>
  new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
    .setProtectedHeader(header)
    .sign(key)
