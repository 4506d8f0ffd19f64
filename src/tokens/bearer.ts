/** The grammar of bearer tokens: one spelling, or no entry. */
import { Denied } from '../errors.ts'
import { rejected } from './rejection.ts'

/** Larger than any access token should be, and far below what a header may hold. */
export const MAX_TOKEN_BYTES = 8192

const SCHEME = 'bearer'
/** RFC 9110 section 11.1: a scheme is a token; what follows it is separated by spaces. */
const CREDENTIALS = /^([!#$%&'*+.^_`|~\w-]+)(?: +(.*))?$/s

const SEGMENTS = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** What the last of two, or three, characters may be, so that the bits it has over are zero. */
const LAST_OF_TWO = 'AQgw'
const LAST_OF_THREE = 'AEIMQUYcgkosw048'

/**
 * Takes the token out of an `Authorization` header (RFC 6750 section 2.1). Throws `Denied`:
 * `token_missing` where there is no header, or one with another scheme, since RFC 6750 section 3.1
 * counts a method that is not supported as no authentication information at all; `token_rejected`
 * for everything that says Bearer and is not followed by exactly one compact JWS of at most
 * 8192 bytes. Nothing else of a request is ever looked at: no query, no body, no cookie.
 *
 * Does NOT look into the token.
 */
export function bearerToken(header: string | undefined): string {
  const { scheme, token } = authorizationOf(header)
  if (scheme !== SCHEME) throw new Denied({ code: 'token_missing' })
  if (token === undefined) throw rejected('empty')
  refuseMalformed(token)
  return token
}

/** An `Authorization` header, taken apart. */
export interface Authorization {
  /** In lower case: schemes are compared so (RFC 9110 section 11.1). */
  readonly scheme: string
  /** All that follows the scheme and its spaces; undefined for a scheme alone. */
  readonly token: string | undefined
}

/**
 * Takes an `Authorization` header apart. Throws `Denied` as {@link bearerToken} does where there is
 * none, where it is too long for a token of 8192 bytes, or where it begins with no scheme.
 */
export function authorizationOf(header: string | undefined): Authorization {
  if (header === undefined) throw new Denied({ code: 'token_missing' })
  // Before any pattern runs over it. The spaces of a longer one would be a game, not a client.
  if (header.length > MAX_TOKEN_BYTES + SCHEME.length + 1) throw rejected('length')
  const [, scheme, token] = CREDENTIALS.exec(header) ?? []
  if (scheme === undefined) throw rejected('authorization_grammar')
  return { scheme: scheme.toLowerCase(), token }
}

/**
 * Throws `Denied` unless `token` is a JWS in compact serialisation (RFC 7515 section 7.1): three
 * segments, none empty, each canonical base64url.
 */
export function refuseMalformed(token: string): void {
  if (token.length > MAX_TOKEN_BYTES) throw rejected('length')
  if (isCompactJws(token)) return
  if (token === '') throw rejected('empty')
  if (/[\s,]/.test(token)) throw rejected('authorization_grammar')
  const segments = token.split('.')
  throw rejected(segments.length === 3 && !segments.includes('') ? 'base64url' : 'segments')
}

/**
 * Whether a text is a JWS in compact serialisation, each segment canonical base64url. Does NOT look
 * at its length as a whole.
 */
export function isCompactJws(token: string): boolean {
  if (!SEGMENTS.test(token)) return false
  const first = token.indexOf('.')
  const second = token.indexOf('.', first + 1)
  return (
    isCanonical(token, 0, first) &&
    isCanonical(token, first + 1, second) &&
    isCanonical(token, second + 1, token.length)
  )
}

/**
 * Whether a run of the base64url alphabet is canonical (RFC 4648 section 3.5): no two texts decode
 * to the same bytes. Not one pattern for all of it, because every request pays for this, and a
 * pattern that counts by fours takes three times as long.
 */
function isCanonical(text: string, start: number, end: number): boolean {
  const last = text.charAt(end - 1)
  switch ((end - start) % 4) {
    case 0:
      return true
    case 2:
      return LAST_OF_TWO.includes(last)
    case 3:
      return LAST_OF_THREE.includes(last)
    default:
      return false
  }
}
