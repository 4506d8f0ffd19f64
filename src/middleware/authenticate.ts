/** The `authenticate` stage: who is asking, told by a bearer token and by nothing else. */
import { createMiddleware } from 'hono/factory'
import type { PrincipalVariables } from '../context.ts'
import { bearerToken } from '../tokens/bearer.ts'
import type { TokenVerifier } from '../tokens/principal.ts'
import { waitUntilOf } from './wait-until.ts'

export interface AuthenticateOptions {
  /** From `createTokenVerifier({ issuers })`. */
  readonly verifier: TokenVerifier
  /** Lets callers without an `Authorization` header through. Default false. */
  readonly anonymous?: boolean
}

/**
 * Verifies the bearer token of the `Authorization` header and sets `principal`; null for a caller
 * who sent none, where `anonymous` allows that. A token that is sent must be good, on an anonymous
 * route too: a caller who believes to be somebody must not be served as nobody. Throws `Denied`
 * (`token_missing`, `token_rejected`) and `Unavailable` when the keys to tell are out of reach.
 *
 * Does NOT check revocation: that is `admit`.
 *
 * @example
 * ```ts
 * const verifier = createTokenVerifier({ issuers: config.issuers })
 * app.get('/orders', authenticate({ verifier }), (c) => c.json(callerOf(c)?.subject))
 * ```
 */
export const authenticate = ({ verifier, anonymous = false }: AuthenticateOptions) =>
  createMiddleware<{ Variables: PrincipalVariables }>(async function authenticate(c, next) {
    const header = c.req.header('Authorization')
    if (header === undefined && anonymous) {
      c.set('principal', null)
    } else {
      const token = bearerToken(header)
      c.set('principal', await verifier.verify(token, waitUntilOf(c)))
    }
    await next()
  })
