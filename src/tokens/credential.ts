/** Credentials of an `Authorization` header: by which scheme, of what kind, in one spelling. */
import { Denied } from '../errors.ts'
import { isApiKey, looksLikeApiKey } from './api-key.ts'
import { authorizationOf, isCompactJws, MAX_TOKEN_BYTES, refuseMalformed } from './bearer.ts'
import type { ReferenceKind } from './reference.ts'
import { rejected, type TokenCheck } from './rejection.ts'

export type CredentialKind = 'jwt' | ReferenceKind

/** What a caller presents. Nothing of it has been verified. */
export interface Credential {
  /** `dpop` asks for a proof of possession beside it (RFC 9449 section 7.1). */
  readonly scheme: 'bearer' | 'dpop'
  readonly kind: CredentialKind
  readonly text: string
}

/** What is taken at all. */
export interface CredentialForms {
  /** Opaque access tokens and API keys, besides JWTs. */
  readonly references: boolean
  /** The scheme `DPoP`, besides `Bearer`. */
  readonly dpop: boolean
}

const BEARER = 'Bearer '
/** As `crypto.randomUUID` writes it (RFC 9562 section 5.4), and in no other spelling. */
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/**
 * What follows `Bearer ` in an `Authorization` header that begins so and is no longer than one with the
 * longest token; undefined for any other. For looking up what was found good before: nothing of its
 * grammar is checked, as {@link credentialOf} does.
 */
export function bearerText(header: string): string | undefined {
  return header.startsWith(BEARER) && header.length <= MAX_TOKEN_BYTES + BEARER.length
    ? header.slice(BEARER.length)
    : undefined
}

/**
 * Takes the credential out of an `Authorization` header (RFC 6750 section 2.1, RFC 9449 section 7.1).
 * Throws `Denied`: `token_missing` where there is no header, or one with a scheme that is not taken;
 * `token_rejected` for a scheme that is followed by anything else than one credential of a kind that
 * is taken, in its one spelling: a compact JWS of at most 8192 bytes, a UUID of version 4 in lower
 * case, or an API key with a right checksum. Nothing else of a request is ever looked at.
 *
 * Does NOT look into it, or ask anybody about it.
 */
export function credentialOf(header: string | undefined, forms: CredentialForms): Credential {
  // The usual case first and without a pattern's captures: every request pays for this.
  const text = header === undefined ? undefined : bearerText(header)
  if (text !== undefined && isCompactJws(text)) return { scheme: 'bearer', kind: 'jwt', text }
  const { scheme, token } = authorizationOf(header)
  if (scheme !== 'bearer' && !(scheme === 'dpop' && forms.dpop))
    throw new Denied({ code: 'token_missing' })
  if (token === undefined) throw rejected('empty')
  return { scheme, kind: kindOf(token, forms), text: token }
}

/**
 * What kind of credential a text is, by its form alone. Throws `Denied` (`token_rejected`) for one
 * that is none, and for a reference where those are not taken.
 */
export function kindOf(
  text: string,
  { references }: Pick<CredentialForms, 'references'>,
): CredentialKind {
  if (references && UUID_V4.test(text)) return 'opaque'
  if (references && looksLikeApiKey(text)) {
    if (!isApiKey(text)) throw rejected('api_key_checksum')
    return 'api_key'
  }
  refuseMalformed(text)
  return 'jwt'
}

/**
 * The check that fails where a token and a proof of possession do not belong together (RFC 9449
 * section 7.1): a token bound to a key must come with a proof by that very key, and a token that is
 * bound to none with no proof at all, or the scheme would promise what nothing holds.
 */
export function failedBindingOf(
  confirmation: string | undefined,
  thumbprint: string | undefined,
): TokenCheck | undefined {
  return confirmation === thumbprint ? undefined : 'dpop_binding'
}
