/** Reads the rest of a refused request, so that the client can read the response. */

import { drain, readChunks } from '../http/drain.ts'
import { createMiddleware } from './create-middleware.ts'

/**
 * After a refusal, discards the rest of the request's body within the bounds of {@link drain}.
 * Comes first, around all stages that refuse.
 *
 * @example
 * ```ts
 * app.use(drainOnRefusal())
 * app.use(requestId(), canonicalPath())
 * ```
 */
export const drainOnRefusal = () =>
  createMiddleware(async function drainOnRefusal(c, next) {
    await next()
    if (c.error === undefined) return
    const { body } = c.req.raw
    if (body !== null && !body.locked) await drain(readChunks(body))
  })
