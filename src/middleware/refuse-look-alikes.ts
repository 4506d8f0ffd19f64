/** Refuses requests that the origin could read as requests of another route. */
import type { MiddlewareHandler } from 'hono'
import { Denied } from '../errors.ts'
import { pathOf } from '../http/path.ts'
import { readsAs } from '../http/path-reading.ts'
import type { LookAlike } from '../policy/look-alikes.ts'

interface LookAlikeOptions {
  /** From `findLookAlikes`. */
  readonly lookAlikes: readonly LookAlike[]
}

/**
 * Refuses a path with `Denied` (`ambiguous_path`, 400) that common origins could read as one of
 * another route: `/api/ADMIN` and `/api/admin/` as `/api/admin`. Needs `canonicalPath` before it.
 *
 * @example
 * ```ts
 * const lookAlikes = findLookAlikes(route, policy.routes)
 * app.on(route.method, [route.path], refuseLookAlikes({ lookAlikes }), forward)
 * ```
 */
export const refuseLookAlikes = ({ lookAlikes }: LookAlikeOptions): MiddlewareHandler => {
  const all = lookAlikes.flatMap(({ readings }) => readings)
  return function refuseLookAlikes(c, next) {
    const path = pathOf(c.req.raw.url)
    if (!readsAs(path, all)) return next()
    const other = lookAlikes.find(({ readings }) => readsAs(path, readings))
    throw new Denied({ code: 'ambiguous_path', check: `reads_as ${other?.path}` })
  }
}
