/** An issuer of access tokens for tests: real keys, real signatures. */
import {
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  type JSONWebKeySet,
  type JWTPayload,
  SignJWT,
} from 'jose'
import { type DEFAULT_ALGORITHMS, DEFAULT_TOKEN_TYPE } from '../validators/issuer.ts'

export interface IssuerOptions {
  /** Identifier (`iss`) and base URL of its documents. Default `https://issuer.test`. */
  readonly issuer?: string
  /** The API that the tokens are for (`aud`). Default `https://api.test`. */
  readonly audience?: string
  /** Default `ES256`. */
  readonly algorithm?: (typeof DEFAULT_ALGORITHMS)[number]
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/** The claims of a token. Every field has a default. */
export interface TokenOptions {
  /** The subject. Default `test-subject`. */
  readonly sub?: string
  /** Default none. */
  readonly roles?: readonly string[]
  /** Default none. */
  readonly scope?: string | readonly string[]
  /** `client_id`. Default `test-client`. */
  readonly client?: string
  /** Default none. */
  readonly tenant?: string
  /** `sid`. Default none. */
  readonly session?: string
  /** Default the audience of the issuer. */
  readonly audience?: string | readonly string[]
  /** From now; negative for a token that has expired. Default 600. */
  readonly expiresInSeconds?: number
  /** Claims to add or to replace; `undefined` removes a claim. */
  readonly claims?: Readonly<Record<string, unknown>>
  /** Members of the header to add or to replace, such as `{ typ: 'JWT' }`. */
  readonly header?: Readonly<Record<string, unknown>>
}

/** An entry of `ISSUERS`, and of `issuers` of `portcullis()`. It contains the keys. */
export interface IssuerEntry {
  readonly issuer: string
  readonly audience: string
  readonly jwks: JSONWebKeySet
}

export interface Issuer {
  readonly issuer: string
  readonly audience: string
  /** Trusts this issuer without a download. */
  readonly entry: IssuerEntry
  /** Signs an access token (RFC 9068) that an issuer entry without further settings accepts. */
  token(options?: TokenOptions): Promise<string>
  /** Returns the public keys. */
  jwks(): JSONWebKeySet
  /**
   * Serves the key set (`/.well-known/jwks.json`), the OpenID discovery document and the metadata of
   * RFC 8414 below the path of `issuer`; anything else is 404. Needs no `this`.
   */
  fetch(request: Request | URL | string): Promise<Response>
}

const DEFAULT_EXPIRY_SECONDS = 600

/**
 * Creates an issuer with a new key. Two issuers never accept each other's tokens, even with the same
 * identifier.
 *
 * @example
 * ```ts
 * const issuer = await createIssuer()
 * const env = { ISSUERS: JSON.stringify([issuer.entry]) }
 * const token = await issuer.token({ sub: 'alice', roles: ['reader'] })
 * ```
 */
export async function createIssuer({
  issuer = 'https://issuer.test',
  audience = 'https://api.test',
  algorithm = 'ES256',
  now = () => Date.now(),
}: IssuerOptions = {}): Promise<Issuer> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true })
  const jwk = await exportJWK(publicKey)
  const kid = await calculateJwkThumbprint(jwk)
  const jwks: JSONWebKeySet = { keys: [{ ...jwk, kid, alg: algorithm, use: 'sig' }] }
  const documents = createDocuments(issuer, algorithm, jwks)

  return {
    issuer,
    audience,
    entry: { issuer, audience, jwks },
    jwks: () => jwks,

    token({ header, ...options } = {}) {
      const claims = createClaims(options, {
        issuer,
        audience,
        nowSeconds: Math.floor(now() / 1000),
      })
      return new SignJWT(claims)
        .setProtectedHeader({ alg: algorithm, kid, typ: DEFAULT_TOKEN_TYPE, ...header })
        .sign(privateKey)
    },

    async fetch(request) {
      const { pathname } = new URL(request instanceof Request ? request.url : request)
      const document = documents.get(pathname)
      return document === undefined
        ? Response.json({ error: 'not_found' }, { status: 404 })
        : Response.json(document)
    },
  }
}

/** `JSON.stringify` omits claims that are undefined. */
function createClaims(
  options: Omit<TokenOptions, 'header'>,
  { issuer, audience, nowSeconds }: Pick<Issuer, 'issuer' | 'audience'> & { nowSeconds: number },
): JWTPayload {
  const { sub = 'test-subject', client = 'test-client', scope, roles, tenant, session } = options
  const { expiresInSeconds = DEFAULT_EXPIRY_SECONDS } = options
  return {
    iss: issuer,
    aud: options.audience ?? audience,
    sub,
    client_id: client,
    scope: typeof scope === 'object' ? scope.join(' ') : scope,
    roles,
    tenant,
    sid: session,
    iat: nowSeconds,
    exp: nowSeconds + expiresInSeconds,
    jti: crypto.randomUUID(),
    ...options.claims,
  } as JWTPayload
}

/** Returns the documents of an issuer by their path. */
function createDocuments(
  issuer: string,
  algorithm: string,
  jwks: JSONWebKeySet,
): ReadonlyMap<string, unknown> {
  const base = issuer.replace(/\/$/, '')
  const { pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const metadata = {
    issuer,
    jwks_uri: `${base}/.well-known/jwks.json`,
    authorization_endpoint: `${base}/authorize`,
    token_endpoint: `${base}/token`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [algorithm],
  }
  return new Map<string, unknown>([
    [`${path}/.well-known/jwks.json`, jwks],
    [`${path}/.well-known/openid-configuration`, metadata],
    // RFC 8414 section 3.1 puts the path of the issuer behind the well-known name.
    [`/.well-known/oauth-authorization-server${path}`, metadata],
  ])
}
