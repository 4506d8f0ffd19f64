/** Refuses paths that the gateway and an origin could read differently. */
import { createMiddleware } from 'hono/factory'
import { Denied } from '../errors.ts'
import { receivedHeaders } from '../request-headers.ts'
import { ambiguity, pathOf } from '../validators/path.ts'

/** `Host: a/b?c` makes a runtime that builds URLs of its parts see another path than was sent. */
const MOVES_PATH = /[/\\?#@]/

/**
 * Refuses an ambiguous path with `Denied` (`path_ambiguous`, 400) before anything matches it:
 * empty and dot segments, encoded delimiters and unreserved characters, double encoding, path
 * parameters, control characters and invalid UTF-8, and a `Host` that moves the path. The list,
 * and why nothing is repaired, is in {@link ambiguity}. Reads the URL as it was sent, not as the
 * router decodes it.
 *
 * Does NOT look at the query: no route matches by it.
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
    const check = MOVES_PATH.test(host) ? 'host' : ambiguity(pathOf(c.req.raw.url))
    if (check !== undefined) throw new Denied({ code: 'path_ambiguous', check })
    return next()
  })
