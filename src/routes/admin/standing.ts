/** Whether an operator is one still: between their admission and their body some time may have passed. */
import type { MiddlewareHandler } from 'hono'
import { callerOf, type GatewayVariables } from '../../context.ts'
import { Denied } from '../../errors.ts'
import type { GrantStore } from '../../oauth/grant-store.ts'
import { type RevocationQuestion, revocationQuestion } from '../../oauth/token-state.ts'

/** Throws `Denied` (`token_revoked`) where the answer says that an operator's token was taken back. */
export function refuseRevoked(
  question: RevocationQuestion,
  values: readonly (string | null)[],
): void {
  const by = question.answer(values)
  if (by !== undefined) throw new Denied({ code: 'token_revoked', by })
}

/**
 * Makes the guard of calls that change something, to stand behind whatever reads their body: a revoked
 * operator must not change anything by a request that was begun before, and whose body is sent as
 * late as it may be. Asks once more, where there is a body. Throws `Denied` (`token_revoked`), and
 * `Unavailable` where nobody can tell.
 */
export function demandStanding(
  store: GrantStore,
): MiddlewareHandler<{ Variables: GatewayVariables }> {
  return async function demandStanding(c, next) {
    const operator = callerOf(c)
    if (operator !== null && c.req.raw.body !== null) {
      const question = await revocationQuestion(operator)
      const { values } = await store.consult({ keys: question.keys })
      refuseRevoked(question, values)
    }
    await next()
  }
}
