/** The operators' API: all its calls. */
import type { MiddlewareHandler } from 'hono'
import type { GatewayVariables } from '../../middleware/context.ts'
import type { Readmission } from '../../middleware/readmit.ts'
import { OPERATORS_LIMIT, type PolicyLimit } from '../../policy/route.ts'
import { apiKeyCalls } from './api-keys.ts'
import { banCalls } from './bans.ts'
import type { AdminCall } from './call.ts'
import { clientCalls } from './clients.ts'
import { limitCalls } from './limits.ts'
import { recordCalls } from './records.ts'
import { revocationCalls } from './revocations.ts'
import type { AdminContext, AdminOptions } from './stores.ts'
import { tokenCalls } from './tokens.ts'

/** Creates the calls of one group. */
export type CallGroup = (context: AdminContext) => readonly AdminCall[]

/**
 * Returns all calls below `/-/admin`. They do not authenticate or authorize their caller:
 * `createGateway` puts the same guards before them as before the routes of a policy. `policyLimits`
 * are all limits of the policy. `otherGroups` are calls of opt-in features. `admitAgain` admits the operator again if the call has a body.
 */
export function adminCalls(
  options: AdminOptions,
  policyLimits: ReadonlyMap<string, PolicyLimit>,
  admitAgain: Readmission,
  otherGroups: readonly CallGroup[] = [],
): readonly AdminCall[] {
  const ownLimit = policyLimits.get(OPERATORS_LIMIT)
  const operatorLimits = ownLimit === undefined ? [] : [ownLimit]
  const groups: readonly CallGroup[] = [
    clientCalls,
    apiKeyCalls,
    revocationCalls,
    banCalls,
    limitCalls,
    recordCalls,
    tokenCalls,
    ...otherGroups,
  ]
  return groups
    .flatMap((callsOf) => callsOf({ ...options, policyLimits, operatorLimits }))
    .map(({ handlers, ...call }) => ({
      ...call,
      handlers: [
        ...handlers.slice(0, -1),
        readmitOperator(admitAgain, call),
        ...handlers.slice(-1),
      ],
    }))
}

/**
 * Creates the guard that comes after the handlers that read the body of a call. A revoked operator
 * must not change or read anything with a request that began before the revocation and has a slow
 * body. The guard admits the operator again if the call has a body; for a read-only call only if
 * the body was slow. Throws `Denied`, and `Unavailable` if the store fails.
 */
function readmitOperator(
  admitAgain: Readmission,
  { changes }: Pick<AdminCall, 'changes'>,
): MiddlewareHandler<{ Variables: GatewayVariables }> {
  return async function readmitOperator(c, next) {
    const sinceMs = c.get('heldUpSinceMs')
    if (sinceMs !== undefined || (changes && c.req.raw.body !== null)) await admitAgain(c, sinceMs)
    await next()
  }
}
