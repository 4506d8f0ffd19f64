/** The `throttle` stage: who has sent too many bad credentials is not checked for another. */
import { createMiddleware } from 'hono/factory'
import type { AuthenticationFailures } from '../admission/authentication-failures.ts'
import { reasonOfDenial } from '../audit/reason.ts'
import { type ClientAddressVariables, clientAddressOf } from '../context.ts'
import { Denied } from '../errors.ts'
import { receivedHeaders } from '../request-headers.ts'
import { credentialOf } from '../tokens/credential.ts'
import type { TokenVerifier } from '../tokens/principal.ts'
import type { References } from '../tokens/references.ts'
import { observe } from './observe.ts'
import { waitUntilOf } from './wait-until.ts'

export interface ThrottleOptions {
  /** From `createAuthenticationFailures`. */
  readonly failures: AuthenticationFailures
  /** The same that `authenticate` gets: tokens that it knows are good go on. */
  readonly verifier: Pick<TokenVerifier, 'recall'>
  /** As above, for opaque tokens and API keys. */
  readonly references?: References | undefined
}

/** What is told, and recorded, of a request whose credential was not looked at. */
export const AUTHENTICATION_FAILURES_LIMIT = 'authentication_failures'

/**
 * Counts the credentials of an address that `authenticate` or `admit` refuse (`token_rejected`,
 * `dpop_rejected`), and refuses an address that has used up its failures before a signature is
 * checked or Redis is asked: `Denied` (`rate_limited`). A credential that this isolate already knows
 * is let through, because looking it up costs nothing and its owner may only share the address; a
 * proof of possession beside it is still checked. Requests without `Authorization` are not looked at.
 *
 * Where `failures` are only observed it refuses nobody, and tells the audit event whom it would have.
 * Comes after `clientAddress` and before `authenticate`. Does NOT count revoked tokens, missing
 * ones, or requests for a nonce: those are no guesses.
 *
 * @example
 * ```ts
 * const counter = createFailureCounter(rest)
 * const limit = { limit: 20, windowSeconds: 60 }
 * const failures = createAuthenticationFailures({ ...limit, counter, now: Date.now })
 * app.use(clientAddress(), throttle({ failures, verifier }), authenticate({ verifier }))
 * ```
 */
export const throttle = ({ failures, verifier, references }: ThrottleOptions) => {
  const forms = { references: references !== undefined, dpop: true }

  function isKnown(header: string): boolean {
    try {
      const { kind, text } = credentialOf(header, forms)
      const known = kind === 'jwt' ? verifier.recall(text) : references?.recall(text)
      return known !== undefined
    } catch (error) {
      if (error instanceof Denied) return false
      throw error
    }
  }

  return createMiddleware<{ Variables: ClientAddressVariables }>(async function throttle(c, next) {
    const header = receivedHeaders(c).get('authorization')
    if (header === undefined) return next()
    const address = clientAddressOf(c)
    const retryAfterSeconds = failures.waitSeconds(address)
    if (retryAfterSeconds !== undefined && !isKnown(header)) {
      const limit = AUTHENTICATION_FAILURES_LIMIT
      const denial = { code: 'rate_limited', limit, retryAfterSeconds } as const
      if (failures.mode === 'enforce') throw new Denied(denial)
      observe(c, reasonOfDenial(denial))
    }
    await next()
    // Hono has turned what a guard threw into an answer, and keeps it here.
    if (isFailure(c.error)) failures.record(address, waitUntilOf(c))
  })
}

function isFailure(error: unknown): boolean {
  if (!(error instanceof Denied)) return false
  return error.denial.code === 'token_rejected' || error.denial.code === 'dpop_rejected'
}
