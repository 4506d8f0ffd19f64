/** A token issuer for tests, with real keys and signatures. */
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose'

export const ISSUER = 'https://issuer.test'
export const REMOTE_ISSUER = 'https://remote-issuer.test'
export const AUDIENCE = 'https://api.test'

export interface TestKey {
  readonly kid: string
  readonly privateJwk: JWK
  readonly publicJwk: JWK
}

/** Creates an ES256 key pair. */
export async function createKey(kid: string): Promise<TestKey> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const common = { kid, alg: 'ES256', use: 'sig' }
  return {
    kid,
    privateJwk: { ...(await exportJWK(privateKey)), ...common },
    publicJwk: { ...(await exportJWK(publicKey)), ...common },
  }
}

/** Claims that replace those of a valid token. `undefined` removes a claim. */
export interface TokenOptions {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
}

const imported = new WeakMap<JWK, CryptoKey>()

/** Signs an access token that is valid for ten minutes, except for the changes in `options`. */
export async function mint(key: TestKey, options: TokenOptions = {}): Promise<string> {
  let privateKey = imported.get(key.privateJwk)
  if (privateKey === undefined) {
    privateKey = (await importJWK(key.privateJwk, 'ES256')) as CryptoKey
    imported.set(key.privateJwk, privateKey)
  }
  const now = Math.floor(Date.now() / 1000)
  return new SignJWT({
    iss: ISSUER,
    aud: AUDIENCE,
    sub: `user-${crypto.randomUUID()}`,
    client_id: 'test-app',
    iat: now,
    exp: now + 600,
    jti: crypto.randomUUID(),
    roles: ['reader'],
    ...options.claims,
  })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: key.kid, ...options.header })
    .sign(privateKey)
}
