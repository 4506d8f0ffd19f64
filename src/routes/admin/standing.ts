/** Whether an operator is one still: between their admission and their body some time may have passed. */
import type { MiddlewareHandler } from 'hono'
import type { GatewayVariables } from '../../context.ts'
import { Denied } from '../../errors.ts'
import type { Readmission } from '../../middleware/readmit.ts'
import type { RevocationQuestion } from '../../oauth/token-state.ts'

/** Throws `Denied` (`token_revoked`) where the answer says that an operator's token was taken back. */
export function refuseRevoked(
  question: RevocationQuestion,
  values: readonly (string | null)[],
): void {
  const by = question.answer(values)
  if (by !== undefined) throw new Denied({ code: 'token_revoked', by })
}

/**
 * Makes the guard that stands behind whatever reads the body of a call: a revoked operator must not do
 * or learn anything by a request that was begun before, and whose body is sent as late as it may be. Asks
 * once more, where there is a body; of a call that changes nothing, only where the body came slowly. Throws
 * `Denied`, and `Unavailable` where nobody can tell.
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
