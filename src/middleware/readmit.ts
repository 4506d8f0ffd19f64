/** The `readmit` stage: what was admitted, and then held up, is asked about once more. */
import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { Admission } from '../admission/admission.ts'
import { DEFAULT_CLOCK_TOLERANCE_SECONDS } from '../config.ts'
import {
  type BodyVariables,
  type ClientAddressVariables,
  callerOf,
  clientAddressOf,
  type PrincipalVariables,
} from '../context.ts'
import { Denied } from '../errors.ts'
import type { Principal } from '../tokens/principal.ts'
import { rejected } from '../tokens/rejection.ts'
import { demandRelation, type RelationOptions, relationToAsk } from './relation.ts'
import { waitUntilOf } from './wait-until.ts'

type Environment = { Variables: PrincipalVariables & ClientAddressVariables & BodyVariables }

export interface ReadmitOptions {
  /** That of `admit`. */
  readonly admission: Admission
  /** Whether the route has limits: only then an anonymous caller's address can be banned. Default false. */
  readonly isLimited?: boolean
  /** Whether the policy only observes its automatic bans. Default false. */
  readonly observesBans?: boolean
  /** As that of `admit`. Default false. */
  readonly strict?: boolean
  /** The relation that `authorize` demands. Default none. */
  readonly relation?: RelationOptions | undefined
}

/**
 * Asks about a request again that has been held up since a moment (milliseconds since the epoch).
 * Throws `Denied`, and `Unavailable` where nobody can tell.
 */
export type Readmission = (c: Context, sinceMs: number | undefined) => Promise<void>

/**
 * Makes it, for one route. It asks about revocation, cut-offs, bans and the relation as `admit` does, with
 * the same bound on how old the answer may be, and refuses a token that has ended since. Limits have counted
 * the request and are left alone, and so is a proof of possession, which has been used.
 */
export function createReadmission({
  admission,
  isLimited = false,
  observesBans = false,
  strict = false,
  relation,
}: ReadmitOptions): Readmission {
  return async function admitAgain(c, sinceMs) {
    const principal = callerOf(c)
    if (principal !== null && sinceMs !== undefined) refuseEnded(principal, sinceMs)
    const address = clientAddressOf(c)
    const demanded = principal === null ? undefined : relation
    const asked = demanded && principal && relationToAsk(c, demanded, principal)
    const verdict = await admission.admit({
      ...{ principal, address, limits: [], asksBans: isLimited, observesBans, strict },
      relation: asked?.query,
    })
    if (verdict.denial !== undefined) throw new Denied(verdict.denial)
    if (verdict.renewal !== undefined) waitUntilOf(c)(verdict.renewal())
    asked?.tell(verdict.relation)
    if (demanded && principal) await demandRelation(c, demanded, principal)
  }
}

/** A token that was past its end before lives on the tolerance of its issuer, which is not known here. */
function refuseEnded({ expiresAtSeconds }: Principal, sinceMs: number): void {
  const endMs = (expiresAtSeconds + DEFAULT_CLOCK_TOLERANCE_SECONDS) * 1000
  if (sinceMs < endMs && endMs <= Date.now()) throw rejected('exp')
}

/**
 * Admits a request a second time whose body took longer than a second to be read: whoever holds a stolen
 * token could begin requests while it is good, and send the last byte of each when it is not any more.
 * Comes behind `inspect` and `validate`, which read bodies; a body that is streamed to the origin is there
 * before it has come, and is not looked at. See {@link createReadmission}.
 *
 * @example
 * ```ts
 * app.post('/notes', limitBody({ maxBytes: 65_536 }), validate({ body: newNote }), readmit({ admission }))
 * ```
 */
export const readmit = (options: ReadmitOptions) => {
  const admitAgain = createReadmission(options)
  return createMiddleware<Environment>(function readmit(c, next) {
    const sinceMs = c.get('heldUpSinceMs')
    return sinceMs === undefined ? next() : admitAgain(c, sinceMs).then(next)
  })
}
