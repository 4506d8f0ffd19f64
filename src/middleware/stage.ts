/** Ties a stage of the pipeline to the timeline of its request. */
import type { MiddlewareHandler } from 'hono'

/**
 * Makes `middleware` note the moment it is entered, so that the audit event can tell how long each
 * stage took. Without `audit` before it, it changes nothing.
 */
export function stage(name: string, middleware: MiddlewareHandler): MiddlewareHandler {
  return function timedStage(c, next) {
    c.get('timeline')?.enter(name)
    return middleware(c, next)
  }
}
