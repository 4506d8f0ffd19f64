/** The grammar of bearer tokens: each token has exactly one accepted spelling. */
import { Denied } from '../errors.ts'
import { rejected } from './rejection.ts'

/** Larger than any access token should be, and far below the limits on headers. */
export const MAX_TOKEN_BYTES = 8192

const SCHEME = 'bearer'
/** RFC 9110 section 11.1: a scheme is a token. Spaces separate it from what follows. */
const CREDENTIALS = /^([!#$%&'*+.^_`|~\w-]+)(?: +(.*))?$/s

const SEGMENTS = /^[\w-]+\.[\w-]+\.[\w-]+$/
/**
 * The allowed last character of a group of two or three. With any other, the unused bits are not
 * zero.
 */
const LAST_OF_TWO = 'AQgw'
const LAST_OF_THREE = 'AEIMQUYcgkosw048'

/**
 * Extracts the token from an `Authorization` header (RFC 6750 section 2.1). Does NOT verify the
 * token. No other part of the request is read: no query, no body, no cookie. Throws `Denied`:
 *
 * - `missing_token` if there is no header, or if it has another scheme. RFC 6750 section 3.1 treats
 *   an unsupported method as no authentication information.
 * - `token_rejected` if the header is too long or does not start with a scheme. The same if the
 *   scheme is Bearer and is not followed by exactly one compact JWS of at most 8192 bytes.
 */
export function bearerToken(header: string | undefined): string {
  const { scheme, token } = authorizationOf(header)
  if (scheme !== SCHEME) throw new Denied({ code: 'missing_token' })
  if (token === undefined) throw rejected('empty')
  refuseMalformed(token)
  return token
}

/** The parts of an `Authorization` header. */
export interface Authorization {
  /** In lower case, because schemes are compared without case (RFC 9110 section 11.1). */
  readonly scheme: string
  /** The text after the scheme and its spaces. Undefined if the header is only a scheme. */
  readonly token: string | undefined
}

/**
 * Splits an `Authorization` header into its parts. Throws `Denied` (`missing_token`) if there is no
 * header. Throws `Denied` (`token_rejected`) if it is too long for a token of 8192 bytes, or if it
 * does not start with a scheme.
 */
export function authorizationOf(header: string | undefined): Authorization {
  if (header === undefined) throw new Denied({ code: 'missing_token' })
  // Checked before any pattern runs over the header. No real client sends enough spaces to exceed
  // this.
  if (header.length > MAX_TOKEN_BYTES + SCHEME.length + 1) throw rejected('length')
  const [, scheme, token] = CREDENTIALS.exec(header) ?? []
  if (scheme === undefined) throw rejected('authorization_grammar')
  return { scheme: scheme.toLowerCase(), token }
}

/**
 * Throws `Denied` unless `token` is a JWS in compact serialization (RFC 7515 section 7.1): three
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
 * Reports whether a text is a JWS in compact serialization, each segment canonical base64url. Does
 * NOT check its total length.
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
 * Reports whether a run of the base64url alphabet is canonical (RFC 4648 section 3.5): no two texts
 * decode to the same bytes. This is not a single pattern, because every request executes it, and a
 * pattern that counts in fours takes three times as long.
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
