/** Keeps an origin from setting the gateway's own cookies. */
import type { MiddlewareHandler } from 'hono'
import { isListed } from '../../access/tokens/token-cookie.ts'
import { writeHeaders } from '../../http/response-headers.ts'

export interface OwnCookiesOptions {
  /** Names of cookies; `login-*` is every name that begins so. */
  readonly names: readonly string[]
}

/** A browser sends a cookie without a name as its value alone, which servers read as name and value. */
const NO_NAME = /^[\s=]+/

/**
 * Removes `Set-Cookie` fields with these names from the response of an origin. Otherwise, an origin
 * could give a browser the session of another user. Comes directly before `proxy`.
 *
 * @example
 * ```ts
 * app.all('*', ownCookies({ names: ['__Host-session'] }), proxy({ origin }))
 * ```
 */
export const ownCookies = ({ names }: OwnCookiesOptions): MiddlewareHandler => {
  const nameOf = (cookie: string) => cookie.replace(NO_NAME, '').split('=', 1).join().trim()
  const isOwn = (cookie: string) => isListed(nameOf(cookie), names)
  return async function ownCookies(c, next) {
    await next()
    const cookies = c.res.headers.getSetCookie()
    if (!cookies.some(isOwn)) return
    writeHeaders(c, (headers) => {
      headers.delete('Set-Cookie')
      for (const cookie of cookies) if (!isOwn(cookie)) headers.append('Set-Cookie', cookie)
    })
  }
}
