/** The `readmit` stage: checks a request again that was delayed after its admission. */
import type { Context } from 'hono'
import type { Principal } from '../access/principal.ts'
import { rejected } from '../access/tokens/rejection.ts'
import { Denied } from '../errors.ts'
import { DEFAULT_CLOCK_TOLERANCE_SECONDS } from '../validators/issuer.ts'
import type { AdmitOptions } from './admit.ts'
import { callerOf, clientAddressOf, type HeldUpVariables, waitUntilOf } from './context.ts'
import { createMiddleware } from './create-middleware.ts'
import { includedQuery, requireRelation, resolveRelation } from './relation.ts'

export interface ReadmitOptions extends Omit<AdmitOptions, 'limits'> {
  /** The route has limits: bans of an anonymous caller's address count. Default false. */
  readonly isLimited?: boolean
  /**
   * A limit of the route says `onUnavailable: 'allow'`, also for credentials that only the origin
   * verifies. Default false.
   */
  readonly passesOutage?: boolean
}

/** Admits a request that has been delayed since `sinceMs`. Throws as `admit` and `authorize` do. */
export type Readmission = (c: Context, sinceMs: number | undefined) => Promise<void>

/**
 * Creates the readmission of one route. It checks revocation, bans and the relation as `admit`
 * does, and refuses a token that expired during the delay. It does not count limits again, and does
 * not check the proof of possession, which is already used.
 */
export function createReadmission({
  admission,
  isLimited = false,
  passesOutage = false,
  strict = false,
  relation,
}: ReadmitOptions): Readmission {
  return async function admitAgain(c, sinceMs) {
    const principal = callerOf(c, 'readmit')
    if (principal !== null && sinceMs !== undefined) refuseEnded(principal, sinceMs)
    const address = clientAddressOf(c, 'readmit')
    const required = relation && principal ? resolveRelation(c, relation, principal) : undefined
    const included = required && relation && includedQuery(required, relation.checker)
    const verdict = await admission.admit({
      principal,
      address,
      limits: [],
      checksBans: isLimited,
      strict,
      isUnverified: c.get('portcullis.unverifiedAuthorization') !== undefined,
      passesOutage,
      relation: included?.query,
    })
    if (verdict.denial !== undefined) throw new Denied(verdict.denial)
    if (verdict.renewal !== undefined) waitUntilOf(c)(verdict.renewal())
    included?.answered(verdict.relation)
    if (required && relation) await requireRelation(c, required, relation)
  }
}

/** A token that had ended before the delay is covered by its issuer's clock tolerance. */
function refuseEnded({ expiresAtSeconds }: Principal, sinceMs: number): void {
  const endMs = (expiresAtSeconds + DEFAULT_CLOCK_TOLERANCE_SECONDS) * 1000
  if (sinceMs < endMs && endMs <= Date.now()) throw rejected('exp')
}

/**
 * Admits a request again ({@link createReadmission}) if reading its body, or the admission itself,
 * took longer than a second. Otherwise the holder of a stolen token could begin requests while the
 * token is valid, and send their last bytes after its revocation. Must run after `inspect` and
 * `validate`, which read bodies. Does NOT cover a body that is streamed to the origin.
 *
 * @example
 * ```ts
 * app.post('/notes', limitBody({ maxBytes }), validate({ body }), readmit({ admission }), handler)
 * ```
 */
export const readmit = (options: ReadmitOptions) => {
  const admitAgain = createReadmission(options)
  return createMiddleware<{ Variables: HeldUpVariables }>(function readmit(c, next) {
    const sinceMs = c.get('portcullis.heldUpSinceMs')
    return sinceMs === undefined ? next() : admitAgain(c, sinceMs).then(next)
  })
}
