/** Parses credentials of an `Authorization` header: the scheme, the kind and the text. */
import { Denied } from '../../errors.ts'
import type { TokenCheck } from '../../problems/checks.ts'
import { DEFAULT_MAX_TOKEN_BYTES } from '../../validators/protection.ts'
import type { TokenVerifier } from '../principal.ts'
import { isApiKey, looksLikeApiKey } from './api-key.ts'
import { isCompactJws, refuseMalformed } from './jws.ts'
import type { BearerReferenceKind } from './reference.ts'
import { rejected } from './rejection.ts'

/** A credential that a caller presents. Nothing of it has been verified. */
export interface Credential {
  /** `dpop` requires a proof of possession in addition (RFC 9449 section 7.1). */
  readonly scheme: 'bearer' | 'dpop'
  /** `upstream`: an opaque token of another issuer, which verifies it. */
  readonly kind: 'jwt' | 'upstream' | BearerReferenceKind
  readonly text: string
}

/** What is accepted in addition to JWTs with the scheme `Bearer`. */
export interface CredentialForms {
  /** Opaque access tokens and API keys. */
  readonly references: boolean
  /** The scheme `DPoP`. */
  readonly dpop: boolean
  /** The longest credential. Default 16,384. */
  readonly maxTokenBytes?: number | undefined
  /** As in `TokenVerifier.opaqueIssuerOf`. Default: opaque tokens of other issuers are refused. */
  readonly upstreamOf?: TokenVerifier['opaqueIssuerOf']
}

const BEARER = 'Bearer '
/** Schemes that the gateway verifies itself. */
const VERIFIED: readonly string[] = ['bearer', 'dpop']
/** RFC 9110 section 11.1: a scheme is a token. Spaces separate it from what follows. */
const CREDENTIALS = /^([!#$%&'*+.^_`|~\w-]+)(?: +(.*))?$/s
/** The quoted value of a parameter, up to its end. A quotation mark elsewhere encloses nothing. */
const QUOTED = /=[ \t]*"(?:[^"\\]|\\.)*"(?=[ \t]*(?:,|$))/gs
const UNCLOSED = /=[ \t]*"/
/** The begin of an element of a list: a name, white space, and what follows. */
const ELEMENT = /^[ \t]*[!#$%&'*+.^_`|~\w-]+([ \t]*)(.?)/s
/** The only accepted spelling: that of `crypto.randomUUID` (RFC 9562 section 5.4). */
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Extracts a JWT as {@link readCredential} does, and accepts no other kind of credential. */
export function bearerToken(header: string | undefined): string {
  return readCredential(header, { references: false, dpop: false }).text
}

/**
 * Returns the text after `Bearer ` in an `Authorization` header. Undefined for another scheme or
 * spelling, and for a header that is too long. Use it for cache lookups: unlike
 * {@link readCredential}, it does NOT check the grammar.
 */
export function bearerText(
  header: string,
  maxTokenBytes: number = DEFAULT_MAX_TOKEN_BYTES,
): string | undefined {
  return header.startsWith(BEARER) && header.length <= maxTokenBytes + BEARER.length
    ? header.slice(BEARER.length)
    : undefined
}

/**
 * Returns the scheme of an `Authorization` header in lower case (RFC 9110 section 11.1). Undefined for
 * a header that does not begin with a scheme.
 */
export const schemeOf = (header: string): string | undefined =>
  CREDENTIALS.exec(header)?.[1]?.toLowerCase()

/** Returns the schemes of a list that the gateway does not verify, in lower case. */
export const unverifiedSchemes = (schemes: readonly string[]): readonly string[] =>
  schemes.map((name) => name.toLowerCase()).filter((name) => !VERIFIED.includes(name))

/**
 * Checks that an `Authorization` header is one credential. Platforms join several fields by commas,
 * which also separate the parameters of one credential: `Digest username="a", realm="b"`. A parameter
 * has a `=` after its name; a scheme has not (RFC 9110 section 11.4). Throws `Denied`:
 *
 * - `ambiguous_credentials` for several credentials.
 * - `malformed_request` for a list with a quoted value that has no end, or text after it: another reader
 *   may find the end of this value, and the next credential, elsewhere.
 */
export function refuseSeveralCredentials(header: string): void {
  if (!header.includes(',')) return
  const check = 'authorization'
  const text = header.replace(QUOTED, '=_')
  if (UNCLOSED.test(text)) throw new Denied({ code: 'malformed_request', check })
  const [, ...others] = text.split(',')
  const isAnother = (element: string) => {
    const [matched, space = '', follows = ''] = ELEMENT.exec(element) ?? []
    return matched !== undefined && follows !== '=' && (space !== '' || follows === '')
  }
  if (others.some(isAnother)) throw new Denied({ code: 'ambiguous_credentials', check })
}

/**
 * Extracts the credential from an `Authorization` header (RFC 6750 section 2.1, RFC 9449 section
 * 7.1). No other part of the request is read: no query, no body, no cookie. Does NOT verify the
 * credential or look it up. Throws `Denied`:
 *
 * - `ambiguous_credentials` if there is more than one credential (RFC 6750 section 2).
 * - `malformed_request` for a list whose quotation marks do not match.
 * - `missing_token` if there is no header, or if its scheme is not accepted. RFC 6750 section 3.1
 *   treats an unsupported method as no authentication information.
 * - `token_rejected` if the header is too long or does not start with a scheme. The same if the
 *   scheme is not followed by exactly one credential of an accepted kind.
 *
 * A credential is a compact JWS of at most `maxTokenBytes`, a UUID of version 4 in lower case, an API key
 * with a correct checksum, or a text for which `upstreamOf` returns an issuer.
 */
export function readCredential(header: string | undefined, forms: CredentialForms): Credential {
  if (header === undefined) throw new Denied({ code: 'missing_token' })
  // The common case comes first and without pattern captures, because every request executes it.
  const { maxTokenBytes = DEFAULT_MAX_TOKEN_BYTES } = forms
  const text = bearerText(header, maxTokenBytes)
  if (text !== undefined && isCompactJws(text)) return { scheme: 'bearer', kind: 'jwt', text }
  // No guess: nothing of either is verified, so it does not count against the address.
  refuseSeveralCredentials(header)
  // No real client sends enough spaces to exceed this.
  if (header.length > maxTokenBytes + BEARER.length) throw rejected('length')
  const [, name, token] = CREDENTIALS.exec(header) ?? []
  if (name === undefined) throw rejected('authorization_grammar')
  // Schemes are compared without case (RFC 9110 section 11.1).
  const scheme = name.toLowerCase()
  if (scheme !== 'bearer' && !(scheme === 'dpop' && forms.dpop))
    throw new Denied({ code: 'missing_token' })
  if (token === undefined) throw rejected('empty')
  return { scheme, kind: classifyToken(token, forms), text: token }
}

/** Returns the kind of a credential by its form. Throws `Denied` (`token_rejected`) otherwise. */
export function classifyToken(
  text: string,
  { references, upstreamOf }: Pick<CredentialForms, 'references' | 'upstreamOf'>,
): Credential['kind'] {
  if (references && UUID_V4.test(text)) return 'opaque'
  if (references && looksLikeApiKey(text)) {
    if (!isApiKey(text)) throw rejected('api_key_checksum')
    return 'api_key'
  }
  if (!isCompactJws(text) && upstreamOf?.(text) !== undefined) return 'upstream'
  refuseMalformed(text)
  return 'jwt'
}

/** Reports whether the store resolves a credential. Otherwise, the token verifier does. */
export function isReference(
  credential: Credential,
): credential is Credential & { readonly kind: BearerReferenceKind } {
  return credential.kind === 'opaque' || credential.kind === 'api_key'
}

/**
 * Returns the check that fails if a token and a proof of possession do not match (RFC 9449 section
 * 7.1). A token that is bound to a key needs a proof by the same key. A token without a binding
 * must come without a proof: the proof would suggest a protection that does not exist.
 */
export function checkBinding(
  confirmation: string | undefined,
  thumbprint: string | undefined,
): TokenCheck | undefined {
  return confirmation === thumbprint ? undefined : 'dpop_binding'
}
