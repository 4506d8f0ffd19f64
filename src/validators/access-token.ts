/** Lifetime of the gateway's access tokens. */
import { wholeNumber } from './schema-parts.ts'

/** A shorter lifetime causes too many refreshes. */
export const MIN_ACCESS_TOKEN_SECONDS = 300
/** A longer lifetime delays changes of roles and scopes. */
export const MAX_ACCESS_TOKEN_SECONDS = 3_600

export const accessTokenSeconds = wholeNumber(MIN_ACCESS_TOKEN_SECONDS, MAX_ACCESS_TOKEN_SECONDS)
