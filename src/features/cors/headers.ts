/** The CORS protocol: headers that let pages of other origins read responses. */

import { coversHost, hostOf } from '../../http/host.ts'
import { writeHeaders } from '../../http/response-headers.ts'
import { fieldsOf, varyBy } from '../../http/shared-caches.ts'
import type { RouteVariables } from '../../middleware/context.ts'
import { createMiddleware } from '../../middleware/create-middleware.ts'
import { receivedHeaders } from '../../middleware/request-headers.ts'
import type { CorsRules } from './rules.ts'

export interface CorsOptions {
  /** Routes without rules: no page of another origin may read their responses. */
  readonly rules: ReadonlyMap<RouteVariables['portcullis.route'], CorsRules>
}

const SWITCHING_PROTOCOLS = 101

/**
 * Adds the CORS headers of the matched route to its response, errors included. An error without a
 * matched route, such as 404, gets those of the first rules for its host that allow the page: it contains
 * nothing about a caller. Comes before every stage that may refuse.
 *
 * Does NOT refuse requests of other pages. CORS decides only which responses a page may read.
 */
export const cors = ({ rules }: CorsOptions) => {
  /** Returns the first rules for the host of a request that allow the page. */
  function rulesFor(url: string, origin: string | undefined): CorsRules | undefined {
    const host = hostOf(url)
    for (const [route, each] of rules)
      if (coversHost(route.host, host) && each.allows(origin)) return each
    return undefined
  }

  return createMiddleware<{ Variables: Partial<RouteVariables> }>(async function cors(c, next) {
    await next()
    if (c.res.status === SWITCHING_PROTOCOLS) return
    const origin = receivedHeaders(c).get('origin')
    const route = c.get('portcullis.route')
    const found = route === undefined ? c.error && rulesFor(c.req.url, origin) : rules.get(route)
    if (found === undefined) return
    writeHeaders(c, (headers) => {
      for (const [name, value] of found.ofResponse(origin)) headers.set(name, value)
      if (found.varyByOrigin) varyBy(fieldsOf(headers), ['Origin'])
    })
  })
}
