/** Lifetime of the gateway's access tokens. */
import * as z from './zod.ts'

/**
 * A shorter lifetime causes too many refreshes. A longer one delays changes of roles and scopes.
 */
export const MIN_ACCESS_TOKEN_SECONDS = 300
export const MAX_ACCESS_TOKEN_SECONDS = 3_600

/** Lifetime of an access token in whole seconds. */
export const accessTokenSeconds = z
  .int()
  .check(z.minimum(MIN_ACCESS_TOKEN_SECONDS), z.maximum(MAX_ACCESS_TOKEN_SECONDS))
