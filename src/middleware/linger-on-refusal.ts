/** Lets a client finish sending what was refused unread, so that it can read the answer. */
import { createMiddleware } from 'hono/factory'
import { chunksOf, linger } from '../linger.ts'

/**
 * After a request was refused, reads what is left of its body and throws it away, within the
 * bounds of `linger` (16 MiB, one second). Comes first, around everything that refuses. Requests
 * that were let through are not touched: their body is the origin's.
 *
 * @example
 * ```ts
 * app.use(lingerOnRefusal())
 * app.use(requestId(), canonicalPath())
 * ```
 */
export const lingerOnRefusal = () =>
  createMiddleware(async function lingerOnRefusal(c, next) {
    await next()
    if (c.error === undefined) return
    const { body } = c.req.raw
    if (body !== null && !body.locked) await linger(chunksOf(body))
  })
