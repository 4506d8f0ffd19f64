/** How long a dependency may take to answer, as an operator says it. */
import * as z from 'zod'

const MIN_TIMEOUT_MS = 10
/** So old may a decision be by the time that its answer is there. */
const MAX_TIMEOUT_MS = 5_000

/** Milliseconds, as text. */
export const callTimeout = z
  .string()
  .regex(/^\d{1,5}$/, 'must be a whole number')
  .transform(Number)
  .refine(
    (ms) => ms >= MIN_TIMEOUT_MS && ms <= MAX_TIMEOUT_MS,
    `must be from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`,
  )
