/** A token issuer that signs any content, well-formed or not. */
import { base64url, exportJWK, generateKeyPair } from 'jose'
import { Denied, Unavailable } from '../../../src/errors.ts'
import type { IssuerConfig } from '../../../src/validators/issuer.ts'
import { issuers } from '../../../src/validators/issuer.ts'
import type { Algorithm } from '../../../src/validators/jwk.ts'

export const ISSUER = 'https://idp.test/'
export const AUDIENCE = 'https://api.test'
export const NOW_SECONDS = 1_800_000_000
export const NOW_MS = NOW_SECONDS * 1000

export interface Signer {
  readonly kid: string
  readonly alg: Algorithm
  readonly publicJwk: JsonWebKey
  readonly privateJwk: JsonWebKey
  /** Signs two texts (or bytes) unchanged. */
  signRaw(header: string | Uint8Array, payload: string | Uint8Array): Promise<string>
  /** Creates a valid token with the given changes; `undefined` removes a member. */
  token(claims?: object, header?: object): Promise<string>
}

export const encode = (part: string | Uint8Array | object): string =>
  base64url.encode(
    typeof part === 'string' || part instanceof Uint8Array ? part : JSON.stringify(part),
  )

export const goodClaims = {
  iss: ISSUER,
  aud: AUDIENCE,
  sub: 'alice',
  iat: NOW_SECONDS,
  exp: NOW_SECONDS + 300,
  jti: 'token-1',
} as const

const parameters = (alg: Algorithm) => ({
  name: alg.startsWith('RS')
    ? 'RSASSA-PKCS1-v1_5'
    : alg.startsWith('PS')
      ? 'RSA-PSS'
      : alg.startsWith('ES')
        ? 'ECDSA'
        : 'Ed25519',
  hash: `SHA-${alg.slice(2)}`,
  saltLength: Number(alg.slice(2)) / 8,
})

export async function createSigner(alg: Algorithm, kid: string = alg): Promise<Signer> {
  const pair = await generateKeyPair(alg, { extractable: true })
  const privateKey = pair.privateKey as CryptoKey
  const signRaw: Signer['signRaw'] = async (header, payload) => {
    const input = `${encode(header)}.${encode(payload)}`
    const bytes = new TextEncoder().encode(input)
    const signature = await crypto.subtle.sign(parameters(alg), privateKey, bytes)
    return `${input}.${encode(new Uint8Array(signature))}`
  }
  return {
    kid,
    alg,
    publicJwk: { ...((await exportJWK(pair.publicKey)) as JsonWebKey), kid, alg } as JsonWebKey,
    privateJwk: { ...((await exportJWK(privateKey)) as JsonWebKey), kid, alg } as JsonWebKey,
    signRaw,
    token: (claims = {}, header = {}) =>
      signRaw(
        JSON.stringify({ alg, kid, typ: 'at+jwt', ...header }),
        JSON.stringify({ ...goodClaims, ...claims }),
      ),
  }
}

/** An issuer with inline keys, checked and completed as by the configuration. */
export function issuerOf(keys: readonly JsonWebKey[], overrides: object = {}): IssuerConfig {
  const [issuer] = issuers.parse([
    { issuer: ISSUER, audience: AUDIENCE, jwks: { keys }, ...overrides },
  ])
  if (issuer === undefined) throw new Error('unreachable')
  return issuer
}

/** Returns `ok`, the check that refused (`token_rejected:exp`), or the failed dependency. */
export async function outcome(attempt: () => unknown): Promise<string> {
  try {
    await attempt()
    return 'ok'
  } catch (error) {
    if (error instanceof Unavailable) return `${error.dependency}:${error.fault}`
    if (!(error instanceof Denied)) throw error
    const { denial } = error
    return denial.code === 'token_rejected' ? `token_rejected:${denial.check}` : denial.code
  }
}
