/** The gateway as an issuer of tokens. */
import { type IssuerConfig, issuers } from './issuer.ts'
import { algorithmsOf, publicJwk, type SigningJwk } from './signing-jwk.ts'

/** The gateway as an issuer that it trusts itself: its public keys, no request to anywhere. */
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
