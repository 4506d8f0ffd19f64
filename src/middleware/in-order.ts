/** Stages of the pipeline, and their composition into one middleware, with few promises. */
import type { Context, ErrorHandler, MiddlewareHandler, Next } from 'hono'
import type { TimelineVariables } from './context.ts'

/** A middleware, and the name of its stage in the timeline if it has one. */
interface Step {
  readonly stage?: string
  readonly describe?: DescribeStage | undefined
  readonly middleware: MiddlewareHandler
}

/** Returns what a stage read, and why it let the request pass, for explanations. */
export type DescribeStage = (c: Context) => {
  readonly read?: Readonly<Record<string, unknown>>
  readonly why: string
}

/** A middleware that records its entry. `timed` contains one that does not. */
export interface Stage extends MiddlewareHandler {
  readonly timed: Step & { readonly stage: string }
}

/** Records when `middleware` is entered: the audit event has the duration of each stage. */
export function stage(
  name: string,
  middleware: MiddlewareHandler,
  describe?: DescribeStage,
): Stage {
  const timedStage: MiddlewareHandler = (c, next) => {
    c.get('portcullis.timeline')?.enter(name)
    return middleware(c, next)
  }
  return Object.assign(timedStage, { timed: { stage: name, middleware, describe } })
}

/** Returns a middleware that does what the middleware of a stage does, and observes it. */
export type StageObserver = (
  stage: string,
  middleware: MiddlewareHandler,
  describe?: DescribeStage,
) => MiddlewareHandler

/** Replaces the middleware of each stage in a list. Other middlewares stay as they are. */
export function observed(
  middlewares: readonly MiddlewareHandler[],
  observe: StageObserver,
): readonly MiddlewareHandler[] {
  return middlewares.map((each) => {
    const { timed } = each as Partial<Stage>
    if (timed === undefined) return each
    return stage(timed.stage, observe(timed.stage, timed.middleware, timed.describe))
  })
}

/**
 * Composes middlewares into one. They run as if each were registered with Hono separately: an error
 * of one becomes a response through `onError` at that point and is kept in `c.error`, and the
 * middlewares before it see that response. `onError` must be the app's error handler. Path
 * parameters are those of the route that the composed middleware is registered for.
 *
 * Without `onError`, an error of one rejects, and the middlewares before it do not see a response.
 *
 * A middleware that returns the result of `next` costs one call, whereas Hono creates a promise and
 * awaits it. If a `stage` is entered before anything was awaited, the timeline gets the time of the
 * previous stage: on Workers the clock has not advanced, and reading it leaves JavaScript.
 *
 * @example
 * ```ts
 * const onError = problemHandler()
 * app.onError(onError).use(inOrder([canonicalPath(), sanitizeHeaders(), clientAddress()], onError))
 * ```
 */
export function inOrder(
  middlewares: readonly MiddlewareHandler[],
  onError?: ErrorHandler,
): MiddlewareHandler {
  const steps = middlewares.map(
    (middleware): Step => (middleware as Partial<Stage>).timed ?? { middleware },
  )
  return function inOrder(c: Context<Environment>, next) {
    const conclude = (answer: unknown) => {
      if (answer instanceof Response && !c.finalized) c.res = answer
    }
    const refuse = (error: unknown) => answerError(c, error, onError)

    function dispatch(at: number, isSameMoment: boolean): Promise<void> {
      const step = steps[at]
      if (step === undefined) return next()
      if (step.stage !== undefined) c.get('portcullis.timeline')?.enter(step.stage, isSameMoment)
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

async function answerError(
  c: Context,
  error: unknown,
  onError: ErrorHandler | undefined,
): Promise<void> {
  if (onError === undefined || !(error instanceof Error)) throw error
  c.error = error
  c.res = await onError(error, c)
}
