/** Checks of schemas that `zod/mini` has only in later versions than 4.0, which the package supports. */
import * as z from 'zod/mini'

interface Findings {
  /** Adds a mistake: its message, or its message and its place. */
  addIssue(issue: string | Issue): void
}

interface Issue {
  readonly code?: 'custom'
  readonly message: string
  readonly path?: PropertyKey[]
  /**
   * Present with the value undefined: ends the checks of this value, and not those of an object that contains
   * it, as `abort` would.
   */
  readonly continue?: undefined
}

/**
 * Returns an issue that ends the checks of its value, and not those of an object that contains it: a mistake in one
 * variable must not hide that another one is missing.
 */
export const last = (message: string): Issue => ({ message, continue: undefined })

/** Creates a check that may find several mistakes in a value. */
export function superRefine<Value>(
  examine: (value: Value, findings: Findings) => void,
): z.core.$ZodCheck<Value> {
  const check = z.check<Value>(({ value: input, issues }) => {
    examine(input, {
      addIssue(issue) {
        const finding = typeof issue === 'string' ? { message: issue } : issue
        issues.push({ code: 'custom', input, inst: check, continue: true, ...finding })
      },
    })
  })
  return check
}

/** Returns a check that accepts every value, and adds metadata to its schema. */
export function meta(metadata: z.core.GlobalMeta): z.core.$ZodCheck<unknown> {
  const check = z.check<unknown>(() => {})
  check._zod.onattach = [
    (schema) => {
      z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), ...metadata })
    },
  ]
  return check
}

/** Returns a check that accepts every value, and describes its schema. */
export const describe = (description: string): z.core.$ZodCheck<unknown> => meta({ description })
