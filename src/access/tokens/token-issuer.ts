import type { JWTPayload } from 'jose'
import { drawnSecret } from '../../crypto/drawn.ts'
import { hmacSha256 } from '../../crypto/sha256.ts'
import { uuidV4 } from '../../isolate/random-ids.ts'
import {
  MAX_ACCESS_TOKEN_SECONDS,
  MIN_ACCESS_TOKEN_SECONDS,
} from '../../validators/access-token.ts'
import { tokenIdHash } from '../token-id.ts'
import type {
  AccessGrant,
  IssuedToken,
  IssueOptions,
  TokenIssuer,
  TokenSeed,
} from './access-grant.ts'
import { loginClaims } from './login.ts'
import { statedAudiences } from './narrowed.ts'
import { credentialHash, type ReferenceRecord, type ReferenceStore } from './reference.ts'
import { oauthRefused } from './rejection.ts'
import { signJwt } from './sign-jwt.ts'
import { activeSigningKey, OWN_TOKENS, type SigningJwk } from './signing-keys.ts'

/** RFC 9068 section 2.1. */
export const ACCESS_TOKEN_TYPE = 'at+jwt'

export interface TokenIssuerOptions {
  readonly keys: readonly SigningJwk[]
  /** `iss`: the gateway's public URL. */
  readonly issuer: string
  readonly references: ReferenceStore
  /** Life of a token, 300 to 3600 s, unless another is requested. */
  readonly defaultTtlSeconds: number
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

/**
 * Creates the token issuer of an isolate. JWTs follow RFC 9068 section 2: `typ` `at+jwt`, and
 * `iss`, `aud`, `sub`, `client_id`, `iat`, `exp`, `jti`; `scope`, `roles`, `tenant`, `sid`,
 * `sub_iss`, `acr`, `amr`, `auth_time` and `cnf` if the grant has them. An opaque token is a UUIDv4, and its record is stored
 * under its SHA-256. Does NOT check the grant: the caller has decided about it. Throws `RangeError`
 * if `defaultTtlSeconds` is not 300 to 3600 s.
 */
export function createTokenIssuer({
  keys,
  issuer,
  references,
  defaultTtlSeconds,
  now = () => Date.now(),
}: TokenIssuerOptions): TokenIssuer {
  refuseLife(defaultTtlSeconds)

  return {
    async issue(grant, options = {}) {
      const nowMs = now()
      const { iat, exp } = times(options, defaultTtlSeconds, nowMs)
      const seed = options.seed === undefined ? randomSeed() : await deriveSeed(options.seed, grant)
      const { tokenId, opaqueToken } = seededIds(seed)
      let token: string
      if (options.format === 'opaque') {
        token = references.draw?.(grant.subject, (n) => opaqueTokenOf(seed, n)) ?? opaqueToken
        const record = createRecord(grant, issuer, { tokenId, iat, exp })
        await references.put(await credentialHash(token), record)
      } else {
        const { algorithm } = options
        const use = { ...OWN_TOKENS, algorithm }
        const { alg, kid, privateKey } = await activeSigningKey(keys, nowMs, use)
        const claims = { ...createClaims(grant, issuer), iat, exp, jti: tokenId }
        token = await signJwt(claims, { alg, kid, typ: ACCESS_TOKEN_TYPE }, privateKey)
      }
      return {
        token,
        tokenId,
        tokenIdHash: await tokenIdHash(issuer, tokenId),
        issuedAtSeconds: iat,
        expiresAtSeconds: exp,
      } satisfies IssuedToken
    },
  }
}

function times(options: IssueOptions, defaultTtlSeconds: number, nowMs: number) {
  const { ttlSeconds = defaultTtlSeconds, notAfterSeconds = Number.POSITIVE_INFINITY } = options
  refuseLife(ttlSeconds)
  const nowSeconds = Math.floor(nowMs / 1000)
  const iat = options.issuedAtSeconds ?? nowSeconds
  const exp = Math.floor(Math.min(iat + ttlSeconds, notAfterSeconds))
  if (exp <= Math.max(iat, nowSeconds)) throw oauthRefused('invalid_grant', 'expired')
  return { iat, exp }
}

function refuseLife(seconds: number): void {
  if (!(seconds >= MIN_ACCESS_TOKEN_SECONDS && seconds <= MAX_ACCESS_TOKEN_SECONDS))
    throw new RangeError('token issuer: an access token lives 300 to 3600 seconds')
}

/** `JSON.stringify` omits claims that are undefined. */
function createClaims(grant: AccessGrant, issuer: string): JWTPayload {
  const { subject, subjectIssuer, client, roles, scopes, confirmation } = grant
  const audiences = statedAudiences(grant.audiences, issuer)
  return {
    iss: issuer,
    aud: audiences.length === 1 ? audiences[0] : [...audiences],
    sub: subject,
    sub_iss: subjectIssuer,
    client_id: client,
    scope: scopes.length > 0 ? scopes.join(' ') : undefined,
    roles: roles.length > 0 ? roles : undefined,
    tenant: grant.tenant,
    sid: grant.session,
    ...loginClaims(grant.login),
    cnf: confirmation === undefined ? undefined : { jkt: confirmation },
  } as JWTPayload
}

function createRecord(
  grant: AccessGrant,
  tokenIssuer: string,
  { tokenId, iat, exp }: { readonly tokenId: string; readonly iat: number; readonly exp: number },
): ReferenceRecord {
  return {
    kind: 'opaque',
    tokenId,
    tokenIssuer,
    issuer: grant.subjectIssuer ?? tokenIssuer,
    subject: grant.subject,
    client: grant.client,
    tenant: grant.tenant,
    session: grant.session,
    roles: [...grant.roles],
    scopes: [...grant.scopes],
    audiences: [...grant.audiences],
    issuedAtSeconds: iat,
    expiresAtSeconds: exp,
    confirmation: grant.confirmation,
    login: grant.login,
  }
}

const UUID_BYTES = 16
const SEED_BYTES = 2 * UUID_BYTES

/** Creates a random seed, for a token that no retry will request again. */
export function randomSeed(): TokenSeed {
  return crypto.getRandomValues(new Uint8Array(SEED_BYTES))
}

/**
 * Derives the seed of a token with exactly these contents. A retry with another scope, other
 * audiences or another key gets another token, and the first token does not change. Throws
 * `RangeError` if the seed is not 32 bytes.
 */
async function deriveSeed(
  seed: TokenSeed,
  { scopes, audiences, confirmation }: AccessGrant,
): Promise<TokenSeed> {
  if (seed.length !== SEED_BYTES) throw new RangeError('token seed: must be 32 bytes')
  const derive = await hmacSha256(seed)
  return derive(JSON.stringify([scopes, audiences, confirmation ?? null]))
}

/**
 * Returns the UUIDs of a seed, both version 4 (RFC 9562 section 5.4), with 122 unpredictable bits
 * each. Neither reveals anything about the other if the seed is random or the output of an HMAC.
 */
export function seededIds(seed: TokenSeed) {
  return {
    tokenId: uuidV4(seed.slice(0, UUID_BYTES)),
    opaqueToken: uuidV4(seed.slice(UUID_BYTES)),
  }
}

/** Returns the opaque token of a seed for an attempt to draw it. A retry with the same seed draws the same token. */
const opaqueTokenOf = (seed: TokenSeed, attempt: number): string =>
  seededIds(drawnSecret(seed, attempt)).opaqueToken
