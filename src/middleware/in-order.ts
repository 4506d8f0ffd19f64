/** Several middlewares as one, which costs a request fewer promises than Hono's own composition. */
import type { Context, ErrorHandler, MiddlewareHandler, Next } from 'hono'
import type { TimelineVariables } from '../context.ts'
import type { Stage } from './stage.ts'

/**
 * Makes one middleware of several, which run as if each had been given to Hono by itself: what one
 * throws, at once or later, becomes the answer by `onError` right there and is kept in `c.error`, so
 * that those before it see an answer; an answer that one returns is taken unless there is one
 * already; `next` may be called once. `onError` is what the app was given.
 *
 * A middleware that returns what `next` gave it costs a call, where Hono makes a promise for it and
 * waits for that. Path parameters are those of the route that the whole is given to. A `stage` that is
 * entered before anything was awaited is noted with the moment of the one before, for on Workers the
 * clock stands still until then, and to look at it leaves JavaScript.
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
      const goOn: Next = () => {
        if (rest !== undefined) throw new Error('next() called multiple times')
        rest = dispatch(at + 1, isFirstTurn && (isSameMoment || step.stage !== undefined))
        return rest
      }
      try {
        const outcome = step.middleware(c, goOn)
        isFirstTurn = false
        // Whatever comes after it has already dealt with its own errors.
        return outcome === rest ? rest : Promise.resolve(outcome).then(conclude, refuse)
      } catch (error) {
        return refuse(error)
      }
    }

    return dispatch(0, false)
  }
}

type Environment = { Variables: Partial<TimelineVariables> }

/** What is done, and its name in the timeline if it has one. */
interface Step {
  readonly stage?: string
  readonly middleware: MiddlewareHandler
}

async function answerError(c: Context, error: unknown, onError: ErrorHandler): Promise<void> {
  if (!(error instanceof Error)) throw error
  c.error = error
  c.res = await onError(error, c)
}
