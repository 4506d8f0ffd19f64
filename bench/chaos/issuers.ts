/**
 * The token issuers of the soak: one with configured keys, one with keys that the gateways fetch.
 */
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'

export const AUDIENCE = 'https://api.soak.test'
const LIFE_SECONDS = 900

export interface Issuer {
  readonly issuer: string
  readonly publicJwk: JWK
  readonly kid: string
  readonly key: CryptoKey
}

/** Creates an issuer with an ES256 key. */
export async function createIssuer(name: string): Promise<Issuer> {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const publicJwk = { ...(await exportJWK(publicKey)), kid: name, alg: 'ES256', use: 'sig' }
  return { issuer: `https://${name}.soak.test`, publicJwk, kid: name, key: privateKey }
}

export interface Claims {
  readonly sub: string
  readonly roles?: readonly string[]
  readonly jti?: string
  readonly sid?: string
  readonly tenant?: string
  readonly aud?: string
  readonly ageSeconds?: number
}

/** Signs an access token with a life of 15 minutes, optionally with another key or `kid`. */
export function signToken(
  { issuer, kid, key }: Issuer,
  { sub, roles = ['reader'], ageSeconds = 0, aud = AUDIENCE, ...claims }: Claims,
  signer: { readonly kid?: string; readonly key?: CryptoKey } = {},
): Promise<string> {
  const iat = Math.floor(Date.now() / 1_000) - ageSeconds
  return new SignJWT({ client_id: 'soak', roles, jti: crypto.randomUUID(), ...claims })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: signer.kid ?? kid })
    .setIssuer(issuer)
    .setSubject(sub)
    .setAudience(aud)
    .setIssuedAt(iat)
    .setExpirationTime(iat + LIFE_SECONDS)
    .sign(signer.key ?? key)
}
