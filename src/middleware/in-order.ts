/**
 * Stages of the pipeline, and their composition into one middleware, with fewer promises per request
 * than Hono's own composition.
 */
import type { Context, ErrorHandler, MiddlewareHandler, Next } from 'hono'
import type { TimelineVariables } from './context.ts'

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

/**
 * Composes middlewares into one. They run as if each were registered with Hono separately. An error
 * of one, synchronous or not, becomes a response through `onError` at that point and is kept in
 * `c.error`; the middlewares before it see that response. A returned response is used unless there
 * already is one. `next` may be called once. `onError` must be the app's error handler.
 *
 * A middleware that returns the result of `next` costs one call, whereas Hono creates a promise and
 * awaits it. Path parameters are those of the route that the composed middleware is registered for.
 * If a `stage` is entered before anything was awaited, the timeline gets the time of the previous
 * stage. On Workers the clock does not advance until then, and reading it leaves JavaScript.
 *
 * @example
 * ```ts
 * const onError = problemHandler()
 * app.onError(onError).use(inOrder([canonicalPath(), sanitizeHeaders(), clientAddress()], onError))
 * ```
 */
export function inOrder(
  middlewares: readonly MiddlewareHandler[],
  onError: ErrorHandler,
): MiddlewareHandler {
  const steps = middlewares.map(
    (middleware) => (middleware as Partial<Stage>).timed ?? { middleware },
  )
  return function inOrder(c: Context<Environment>, next) {
    const conclude = (answer: unknown) => {
      if (answer instanceof Response && !c.finalized) c.res = answer
    }
    const refuse = (error: unknown) => answerError(c, error, onError)

    function dispatch(at: number, isSameMoment: boolean): Promise<void> {
      const step: Step | undefined = steps[at]
      if (step === undefined) return next()
      if (step.stage !== undefined) c.get('timeline')?.enter(step.stage, isSameMoment)
      let isFirstTurn = true
      let rest: Promise<void> | undefined
      const proceed: Next = () => {
        if (rest !== undefined) throw new Error('next() called multiple times')
        rest = dispatch(at + 1, isFirstTurn && (isSameMoment || step.stage !== undefined))
        return rest
      }
      try {
        const outcome = step.middleware(c, proceed)
        isFirstTurn = false
        // The middlewares after it have already handled their own errors.
        return outcome === rest ? rest : Promise.resolve(outcome).then(conclude, refuse)
      } catch (error) {
        return refuse(error)
      }
    }

    return dispatch(0, false)
  }
}

type Environment = { Variables: Partial<TimelineVariables> }

/** A middleware, and the name of its stage in the timeline if it has one. */
interface Step {
  readonly stage?: string
  readonly middleware: MiddlewareHandler
}

async function answerError(c: Context, error: unknown, onError: ErrorHandler): Promise<void> {
  if (!(error instanceof Error)) throw error
  c.error = error
  c.res = await onError(error, c)
}
