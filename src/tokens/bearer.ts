/** The grammar of bearer tokens: one spelling, or no entry. */
import { Denied } from '../errors.ts'
import { rejected } from './rejection.ts'

/** Larger than any access token should be, and far below what a header may hold. */
export const MAX_TOKEN_BYTES = 8192

const SCHEME = 'bearer'
/** RFC 9110 section 11.1: a scheme is a token; what follows it is separated by spaces. */
const CREDENTIALS = /^([!#$%&'*+.^_`|~\w-]+)(?: +(.*))?$/s

/**
 * Canonical base64url (RFC 4648 sections 3.5 and 5): no padding, no white space, and unused bits
 * are zero, so that no two texts decode to the same bytes.
 */
const SEGMENT = '(?:[\\w-]{4})*(?:[\\w-]{4}|[\\w-][AQgw]|[\\w-]{2}[AEIMQUYcgkosw048])'
const COMPACT_JWS = new RegExp(`^${SEGMENT}\\.${SEGMENT}\\.${SEGMENT}$`)

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
  if (header === undefined) throw new Denied({ code: 'token_missing' })
  // Before any pattern runs over it. The spaces of a longer one would be a game, not a client.
  if (header.length > MAX_TOKEN_BYTES + SCHEME.length + 1) throw rejected('length')
  const [, scheme, token] = CREDENTIALS.exec(header) ?? []
  if (scheme === undefined) throw rejected('authorization_grammar')
  if (scheme.toLowerCase() !== SCHEME) throw new Denied({ code: 'token_missing' })
  if (token === undefined) throw rejected('empty')
  refuseMalformed(token)
  return token
}

/**
 * Throws `Denied` unless `token` is a JWS in compact serialisation (RFC 7515 section 7.1): three
 * segments, none empty, each canonical base64url.
 */
export function refuseMalformed(token: string): void {
  if (token.length > MAX_TOKEN_BYTES) throw rejected('length')
  if (COMPACT_JWS.test(token)) return
  if (token === '') throw rejected('empty')
  if (/[\s,]/.test(token)) throw rejected('authorization_grammar')
  const segments = token.split('.')
  throw rejected(segments.length === 3 && !segments.includes('') ? 'base64url' : 'segments')
}
