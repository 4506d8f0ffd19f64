/** Timeout of calls to a dependency, as configured by an operator. */
import * as z from 'zod'

const MIN_TIMEOUT_MS = 10
/** Also bounds the age of a decision when its response arrives. */
const MAX_TIMEOUT_MS = 5_000

/** Parses milliseconds from text. */
export const callTimeout = z
  .string()
  .regex(/^\d{1,5}$/, 'must be a whole number')
  .transform(Number)
  .refine(
    (ms) => ms >= MIN_TIMEOUT_MS && ms <= MAX_TIMEOUT_MS,
    `must be from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`,
  )
