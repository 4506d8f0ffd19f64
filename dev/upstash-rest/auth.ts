/** Authentication by the server's token, in a header or in the query parameter `_token`. */
import { timingSafeEqual } from 'node:crypto'
import { Refusal } from './refusal.ts'

/** RFC 6750, 2.1; the scheme is case-insensitive (RFC 9110, 11.1). */
const BEARER = /^bearer +(\S+)$/i

/** Throws a 401 `Refusal` unless the header or, without a header, the query has the token. */
export type TokenGuard = (authorization: string | undefined, queryToken?: string) => void

/** Creates a guard for `token`. Its timing reveals only the length of the token. */
export function requireToken(token: string): TokenGuard {
  const expected = Buffer.from(token)

  return function checkToken(authorization, queryToken) {
    const given = authorization === undefined ? queryToken : BEARER.exec(authorization)?.[1]
    const bytes = Buffer.from(given ?? '')
    if (bytes.length !== expected.length || !timingSafeEqual(bytes, expected)) {
      throw new Refusal(401, 'WRONGPASS invalid or missing auth token')
    }
  }
}
