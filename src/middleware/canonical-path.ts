/** Refuses paths that the gateway and an origin could read differently. */

import { Denied } from '../errors.ts'
import { ambiguity, pathOf } from '../http/path.ts'
import { createMiddleware } from './create-middleware.ts'
import { receivedHeaders } from './request-headers.ts'

/**
 * With `Host: a/b?c`, a runtime that builds URLs from parts reads a path that was not sent. A comma
 * joins several fields: a proxy in front may have used another one.
 */
const AMBIGUOUS_HOST = /[/\\?#@,]/

/**
 * Refuses a path that is ambiguous (see {@link ambiguity}), or that `Host` changes, with `Denied`
 * (`ambiguous_path`, 400) before a route matches it. Reads the URL as it was sent, not as the
 * router decodes it.
 *
 * Does NOT check the query: no route matches by it. Does NOT compare with the routes: if an app has
 * `/api/admin` and `/api/*`, and its origin ignores case, the app must refuse `/api/ADMIN` itself.
 *
 * @example
 * ```ts
 * app.use(canonicalPath())
 * app.get('/admin/*', requireAdmin)
 * ```
 */
export const canonicalPath = () =>
  createMiddleware(function canonicalPath(c, next) {
    const host = receivedHeaders(c).get('host') ?? ''
    const check = AMBIGUOUS_HOST.test(host) ? 'host' : ambiguity(pathOf(c.req.raw.url))
    if (check !== undefined) throw new Denied({ code: 'ambiguous_path', check })
    return next()
  })
