/** Signs access tokens (RFC 9068) like a local gateway, for developers, examples and tests. */
import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import {
  activeKey,
  importSigningKey,
  parseSigningKeys,
} from '../../src/access/tokens/signing-keys.ts'
import { DEFAULT_TOKEN_TYPE } from '../../src/validators/issuer.ts'
import { publicUrlOf } from '../../src/validators/public-url.ts'

/** Claims and lifetime of the token. */
export interface AccessTokenRequest {
  readonly subject: string
  readonly client: string
  readonly roles: readonly string[]
  readonly scope?: string | undefined
  readonly tenant?: string | undefined
  /** `sid`. */
  readonly session?: string | undefined
  /** `jti`. Default: a random UUID. */
  readonly tokenId?: string | undefined
  readonly ttlSeconds: number
}

/** The gateway variables that identify the signer. */
export interface Signer {
  /** Issuer and audience. */
  readonly PUBLIC_URL: string
  /** Private JWKS as JSON. Its active key signs. */
  readonly SIGNING_KEYS: string
}

/** Returns a compact JWT that is valid from `nowSeconds` on. Throws if there is no usable key. */
export async function signAccessToken(
  request: AccessTokenRequest,
  signer: Signer,
  nowSeconds = Math.floor(Date.now() / 1000),
): Promise<string> {
  const jwk = activeKey(parseSigningKeys(JSON.parse(signer.SIGNING_KEYS)), nowSeconds * 1000)
  if (jwk === undefined) throw new Error('SIGNING_KEYS has no active key')
  const { kid, alg, privateKey } = await importSigningKey(jwk)
  const publicUrl = publicUrlOf(signer.PUBLIC_URL)
  const { roles, scope, tenant, session } = request
  return await new SignJWT({
    client_id: request.client,
    roles,
    ...(scope !== undefined && { scope }),
    ...(tenant !== undefined && { tenant }),
    ...(session !== undefined && { sid: session }),
  })
    .setProtectedHeader({ typ: DEFAULT_TOKEN_TYPE, alg, kid })
    .setIssuer(publicUrl)
    .setAudience(publicUrl)
    .setSubject(request.subject)
    .setJti(request.tokenId ?? randomUUID())
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + request.ttlSeconds)
    .sign(privateKey)
}
