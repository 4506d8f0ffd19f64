/** Ties a stage of the pipeline to the timeline of its request. */
import type { MiddlewareHandler } from 'hono'

/** A middleware that has a name in the timeline. */
export interface Stage extends MiddlewareHandler {
  readonly timed: {
    readonly stage: string
    /** Without the note. */
    readonly middleware: MiddlewareHandler
  }
}

/**
 * Makes `middleware` note the moment it is entered, so that the audit event can tell how long each
 * stage took. Without `audit` before it, it changes nothing.
 */
export function stage(name: string, middleware: MiddlewareHandler): Stage {
  const timedStage: MiddlewareHandler = (c, next) => {
    c.get('timeline')?.enter(name)
    return middleware(c, next)
  }
  return Object.assign(timedStage, { timed: { stage: name, middleware } })
}
