/** The gateway as a trusted issuer of its own tokens. */
import { type IssuerConfig, issuers } from './issuer.ts'
import { algorithmsOf, publicJwk, type SigningJwk } from './signing-jwk.ts'

/**
 * Returns the configuration of the gateway as an issuer. It contains the public keys, so that no
 * request is needed to fetch them.
 */
export function ownIssuer(publicUrl: string, keys: readonly SigningJwk[]): IssuerConfig {
  const [own] = issuers.parse([
    {
      issuer: publicUrl,
      audience: publicUrl,
      jwks: { keys: keys.map((key) => ({ ...publicJwk(key), exp: key.exp })) },
      algorithms: algorithmsOf(keys),
    },
  ]) as [IssuerConfig]
  return own
}
