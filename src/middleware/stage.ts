/** Names a stage of the pipeline in the timeline of its request. */
import type { MiddlewareHandler } from 'hono'

/** A middleware that has a name in the timeline. */
export interface Stage extends MiddlewareHandler {
  readonly timed: {
    readonly stage: string
    /** The middleware that does not record its entry. */
    readonly middleware: MiddlewareHandler
  }
}

/**
 * Wraps `middleware` to record when it is entered, so that the audit event contains the duration of
 * each stage. Has no effect without `audit` before it.
 */
export function stage(name: string, middleware: MiddlewareHandler): Stage {
  const timedStage: MiddlewareHandler = (c, next) => {
    c.get('timeline')?.enter(name)
    return middleware(c, next)
  }
  return Object.assign(timedStage, { timed: { stage: name, middleware } })
}
