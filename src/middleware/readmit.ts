/** The `readmit` stage: what was admitted before a body came slowly is asked about once more. */
import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { Admission } from '../admission/admission.ts'
import {
  type BodyVariables,
  type ClientAddressVariables,
  callerOf,
  clientAddressOf,
  type PrincipalVariables,
} from '../context.ts'
import { Denied } from '../errors.ts'
import { demandRelation, type RelationOptions, relationToAsk } from './relation.ts'

type Environment = { Variables: PrincipalVariables & ClientAddressVariables & BodyVariables }

export interface ReadmitOptions {
  /** That of `admit`. */
  readonly admission: Admission
  /** Whether the policy only observes its automatic bans. Default false. */
  readonly observesBans?: boolean
  /** The relation that `authorize` demands. Default none. */
  readonly relation?: RelationOptions | undefined
}

/**
 * Admits a request a second time whose body took longer than a second to be read: whoever holds a stolen
 * token could begin requests while it is good, and send the last byte of each when it is not any more.
 * Asks about revocation, cut-offs, bans and the relation as `admit` does, with the same bound on how old
 * the answer may be; limits have counted the request and are left alone, and so is a proof of
 * possession, which has been used. Comes behind `inspect` and `validate`, which read bodies; a body that
 * is streamed to the origin is there before it has come, and is not looked at. Throws `Denied`, and
 * `Unavailable` where nobody can tell.
 *
 * @example
 * ```ts
 * app.post('/notes', limitBody({ maxBytes: 65_536 }), validate({ body: newNote }), readmit({ admission }))
 * ```
 */
export const readmit = ({ admission, observesBans = false, relation }: ReadmitOptions) => {
  async function admitAgain(c: Context<Environment>) {
    const principal = callerOf(c)
    const address = clientAddressOf(c)
    const demanded = principal === null ? undefined : relation
    const asked = demanded && principal && relationToAsk(c, demanded, principal)
    const verdict = await admission.admit({
      ...{ principal, address, limits: [], observesBans },
      relation: asked?.query,
    })
    if (verdict.denial !== undefined) throw new Denied(verdict.denial)
    asked?.tell(verdict.relation)
    if (demanded && principal) await demandRelation(c, demanded, principal)
  }

  return createMiddleware<Environment>(function readmit(c, next) {
    return c.get('bodyWasSlow') === true ? admitAgain(c).then(next) : next()
  })
}
