/** Checks the operator again after the body of a call has arrived. */
import type { MiddlewareHandler } from 'hono'
import { Denied } from '../../errors.ts'
import type { GatewayVariables } from '../../middleware/context.ts'
import type { Readmission } from '../../middleware/readmit.ts'
import type { RevocationQuestion } from '../../oauth/token-state.ts'

/** Throws `Denied` (`token_revoked`) if the answer says that an operator's token was revoked. */
export function refuseRevoked(
  question: RevocationQuestion,
  values: readonly (string | null)[],
): void {
  const by = question.answer(values)
  if (by !== undefined) throw new Denied({ code: 'token_revoked', by })
}

/**
 * Creates the guard that comes after the handlers that read the body of a call. A revoked operator
 * must not change or read anything with a request that began before the revocation and has a slow
 * body. The guard admits the operator again if the call has a body; for a read-only call only if
 * the body was slow. Throws `Denied`, and `Unavailable` if the store fails.
 */
export function demandStanding(
  admitAgain: Readmission,
  { changes }: { readonly changes: boolean },
): MiddlewareHandler<{ Variables: GatewayVariables }> {
  return async function demandStanding(c, next) {
    const sinceMs = c.get('heldUpSinceMs')
    if (sinceMs !== undefined || (changes && c.req.raw.body !== null)) await admitAgain(c, sinceMs)
    await next()
  }
}
