/** How long access tokens of the gateway may live. */
import * as z from 'zod'

/** A shorter life is all refreshing, a longer one outlives what it was granted for. */
export const MIN_ACCESS_TOKEN_SECONDS = 300
export const MAX_ACCESS_TOKEN_SECONDS = 3_600

/** The life of an access token, whole seconds. */
export const accessTokenSeconds = z
  .int()
  .min(MIN_ACCESS_TOKEN_SECONDS)
  .max(MAX_ACCESS_TOKEN_SECONDS)
