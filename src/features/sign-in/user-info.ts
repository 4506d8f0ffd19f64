/** Claims of a user from the UserInfo endpoint (OpenID Connect Core section 5.3). */

import { isAcceptable } from '../../access/tokens/discovery.ts'
import { call } from '../../access/tokens/document.ts'
import { readHeader, readOwnMember, readPayload, verifySignature } from '../../access/tokens/jws.ts'
import type { KeySet } from '../../access/tokens/key-set.ts'
import { Denied, Unavailable } from '../../errors.ts'
import { parseStrictJson } from '../../http/strict-json.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import { signInRefused } from './refused.ts'
import type { SignInSettings } from './schema.ts'

type Claims = Readonly<Record<string, unknown>>

export interface UserInfoQuery {
  /** `userinfo_endpoint` of the provider's metadata. */
  readonly endpoint: string | undefined
  /** Undefined: the provider has sent none that a request can have as a bearer token. */
  readonly accessToken: string | undefined
  /** `sub` of the verified ID token. */
  readonly subject: unknown
  readonly waitUntil?: WaitUntil | undefined
}

export interface UserInfoOptions {
  readonly issuer: string
  /** The gateway at the provider. */
  readonly client: string
  /** The algorithm of signed responses. */
  readonly algorithm: string
  readonly keySet: KeySet
  readonly mode: SignInSettings['userInfo']
  readonly timeoutMs: number
}

/** Larger than the claims of any user, with groups. */
const MAX_RESPONSE_BYTES = 65_536
/** Says nothing about the token: the request is too slow, too early, or one of too many. */
const OVERLOADED: readonly number[] = [408, 425, 429]
/**
 * Only the ID token states these. They are about the token and the login, or the signature makes them
 * worth more than a response.
 */
// biome-ignore format: a table
const OF_ID_TOKEN: readonly string[] = [
  'iss', 'sub', 'aud', 'exp', 'iat', 'nbf', 'jti', 'azp', 'client_id', 'nonce', 'at_hash', 'c_hash', 's_hash',
  'sid', 'acr', 'amr', 'auth_time', 'cnf', 'events', 'typ', 'type', 'token_type', 'token_use',
]

/**
 * Creates the reader of UserInfo. Returns the claims that an ID token may lack. Throws `Denied`
 * (`sign_in_refused`) if the response is about another user, because the claims of one user must never
 * become those of another one; and `Unavailable` without a complete response in time.
 *
 * With the mode `auto`, a provider that has no endpoint, sends no access token for it, or refuses that
 * token, adds no claims. A refusal is logged once. With `required`, it fails the login.
 */
export function createUserInfo({
  issuer,
  client,
  algorithm,
  keySet,
  mode = 'auto',
  timeoutMs,
}: UserInfoOptions): (query: UserInfoQuery) => Promise<Claims> {
  let isReported = false

  function absent(check: 'user_info_missing' | 'user_info_refused'): Claims {
    if (mode === 'required') throw signInRefused(check)
    return {}
  }

  /** A signed response (section 5.3.2). */
  async function verifiedClaims(text: string, waitUntil: WaitUntil | undefined): Promise<Claims> {
    try {
      const header = readHeader(text)
      if (header.alg !== algorithm) throw signInRefused('user_info_signature')
      await verifySignature(text, await keySet.find(header, waitUntil))
      const claims = readPayload(text)
      const [iss, aud] = ['iss', 'aud'].map((name) => readOwnMember(claims, name))
      if (iss !== issuer || ![aud].flat().includes(client))
        throw signInRefused('user_info_signature')
      return claims
    } catch (error) {
      if (error instanceof Denied && error.denial.code === 'token_rejected')
        throw signInRefused('user_info_signature', { cause: error })
      throw error
    }
  }

  return async function readUserInfo({ endpoint, accessToken, subject, waitUntil }) {
    if (mode === 'never') return {}
    if (endpoint === undefined || accessToken === undefined || !isAcceptable(endpoint, issuer))
      return absent('user_info_missing')
    const headers = { accept: 'application/json', authorization: `Bearer ${accessToken}` }
    const {
      status,
      headers: fields,
      text,
    } = await call(
      endpoint,
      { headers },
      {
        dependency: 'identity_provider',
        maxBytes: MAX_RESPONSE_BYTES,
        signal: AbortSignal.timeout(timeoutMs),
        readsRefusals: true,
      },
    )
    if (status !== 200) {
      if (status < 400 || status >= 500 || OVERLOADED.includes(status))
        throw new Unavailable('identity_provider', 'refused')
      if (!isReported)
        console.error(JSON.stringify({ incident: 'sign_in_user_info_refused', issuer, status }))
      isReported = true
      return absent('user_info_refused')
    }
    const isSigned = /^application\/jwt\b/i.test(fields.get('content-type') ?? '')
    const claims = isSigned ? await verifiedClaims(text, waitUntil) : claimsIn(text)
    const sub = readOwnMember(claims, 'sub')
    if (typeof sub !== 'string' || sub !== subject) throw signInRefused('user_info_sub')
    return Object.fromEntries(
      Object.entries(claims).filter(([name]) => !OF_ID_TOKEN.includes(name)),
    )
  }
}

function claimsIn(text: string): Claims {
  try {
    const value = parseStrictJson(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Claims
  } catch (cause) {
    throw new Unavailable('identity_provider', 'malformed', { cause })
  }
  throw new Unavailable('identity_provider', 'malformed')
}
