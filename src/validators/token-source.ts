/** Sources of an issuer's tokens: headers and cookies of a request. */
import * as z from 'zod/mini'
import { webOrigin } from './variables.ts'

/** More than one issuer needs. Each request looks at every source. */
const MAX_SOURCES = 8
const MAX_NAME_CHARS = 256

/** Headers with another meaning. Some of their values are logged. */
export const OTHER_MEANING =
  /^(?:(?:set-)?cookie2?|dpop|host|origin|referer|user-agent|trace(?:parent|state)|x-request-id|x-consistency-token|cf-(?!access-).+|(?:content|proxy|sec|x-auth|x-forwarded)-.+)$/i

/** The name of a header that may contain a token. */
export const tokenHeader = z.string().check(
  z.maxLength(MAX_NAME_CHARS),
  z.regex(/^[a-z0-9-]+$/i, 'must contain only letters, digits and hyphens'),
  z.refine((name) => !OTHER_MEANING.test(name), 'is a header with another meaning'),
)

/** RFC 6265 section 4.1.1. */
const cookie = z
  .string()
  .check(
    z.maxLength(MAX_NAME_CHARS),
    z.regex(/^[!#$%&'*+.^_`|~\w-]+$/, 'must be the name of a cookie (RFC 6265)'),
  )

const FORM =
  'must be { "header": NAME } or { "cookie": NAME }; a query parameter is not possible: URLs are logged'

const origins = z.optional(z.array(webOrigin))

const tokenSource = z.union(
  [
    z
      .strictObject({ header: tokenHeader, fromCookie: z.optional(cookie), origins }, FORM)
      .check(
        z.refine(
          (source) => source.origins === undefined || source.fromCookie !== undefined,
          'origins requires fromCookie: browsers send other headers only for pages of the same origin',
        ),
      ),
    z.strictObject({ cookie, origins }, FORM),
  ],
  FORM,
)

/** A header that contains a token. */
interface HeaderSource {
  /**
   * `Authorization`, where the token follows the scheme `Bearer` or `DPoP`, or another header that contains only the token.
   */
  readonly header: string
  /**
   * The cookie from which a proxy in front of the gateway sets the header: the cookie is not read, and not forwarded.
   * Default: none.
   */
  readonly fromCookie?: string | undefined
  /**
   * Other origins with pages that may send the cookie with unsafe methods and upgrades. Requires `fromCookie`.
   * Default: only pages of the same origin.
   */
  readonly origins?: readonly string[] | undefined
}

/** A cookie that contains a token. */
interface CookieSource {
  /** A cookie that contains only the token. */
  readonly cookie: string
  /**
   * Other origins with pages that may send the cookie with unsafe methods and upgrades. Default: only pages of the
   * same origin.
   */
  readonly origins?: readonly string[] | undefined
}

/** A place for a token in a request: a header or a cookie. */
export type TokenSource = HeaderSource | CookieSource

export const DEFAULT_TOKEN_SOURCES: readonly TokenSource[] = [{ header: 'Authorization' }]

/** Reports whether it is the header in which a token follows its scheme. */
export const isAuthorization = (source: TokenSource): boolean =>
  'header' in source && source.header.toLowerCase() === 'authorization'

export const tokenSources = z.array(tokenSource).check(z.minLength(1), z.maxLength(MAX_SOURCES))
