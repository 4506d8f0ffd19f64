/** Runs code of a feature so that a defect in it is a 500 and never an admission. */
import type { Context, MiddlewareHandler } from 'hono'
import { Misconfigured, ProblemError } from '../../errors.ts'
import { type DescribeStage, type Stage, stage } from '../../middleware/in-order.ts'
import type { WatchOwn } from '../../middleware/open-stream.ts'
import type { FeatureStage } from './declaration.ts'

/**
 * Returns the error as the gateway treats it. An `HTTPException` would count as the response of an origin, and
 * what is no error has no handler: both are defects.
 */
export function defectOf(thrown: unknown): Error {
  if (thrown instanceof ProblemError) return thrown
  if (!(thrown instanceof Error)) return new TypeError('a feature threw a value that is no error')
  if (!('getResponse' in thrown)) return thrown
  const defect = new TypeError(thrown.message)
  if (thrown.stack !== undefined) defect.stack = thrown.stack
  return defect
}

export function ownStage(name: string, { run, describe }: FeatureStage, watchOwn: WatchOwn): Stage {
  const guarded: MiddlewareHandler = async function ownStage(c, next) {
    let rest: Promise<void> | undefined
    let isOver = false
    let answer: unknown
    try {
      answer = await run(c, () => {
        if (isOver && rest === undefined)
          throw new TypeError('a stage called next after it had ended')
        rest ??= next()
        return rest
      })
    } catch (error) {
      throw defectOf(error)
    } finally {
      isOver = true
      // Whether or not the stage has waited for the rest of the pipeline.
      await rest
    }
    if (rest === undefined && !(answer instanceof Response))
      throw new TypeError('a stage neither called next nor returned a response')
    return rest === undefined && answer instanceof Response ? watchOwn(c, answer) : undefined
  }
  return stage(name, guarded, describe && safely(describe))
}

/** An explanation must not fail because its text does. */
const safely =
  (describe: DescribeStage): DescribeStage =>
  (c: Context) => {
    try {
      return describe(c)
    } catch {
      return { why: 'the feature could not describe its stage' }
    }
  }

/** Returns the value of a step at the start of the gateway. Throws `Misconfigured` if it throws. */
export function atStart<Value>(name: string, step: string, run: () => Value): Value {
  try {
    return run()
  } catch (error) {
    if (error instanceof Misconfigured) throw error
    const why = error instanceof Error ? error.message : 'a value that is no error'
    throw new Misconfigured('The policy', [`features.${name}.${step}: threw ${why}`])
  }
}
