/** The operators' API: all its calls. */
import type { MiddlewareHandler } from 'hono'
import type { Readmission } from '../../middleware/readmit.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { apiKeyCalls } from './api-keys.ts'
import { banCalls } from './bans.ts'
import type { AdminCall } from './call.ts'
import { checkCalls } from './check.ts'
import { clientCalls } from './clients.ts'
import { erasureCalls } from './erasures.ts'
import { limitCalls } from './limits.ts'
import { recordCalls } from './records.ts'
import { relationCalls } from './relations.ts'
import { revocationCalls } from './revocations.ts'
import { demandStanding } from './standing.ts'
import type { AdminOptions } from './stores.ts'
import { tokenCalls } from './tokens.ts'

export type { AdminCall } from './call.ts'
export type { AdminOptions, AdminStores } from './stores.ts'

/** If the policy has a limit of this name, it counts operators' requests. */
const OPERATORS_LIMIT = 'operators'

/**
 * Returns all calls below `/-/admin`. They do not authenticate or authorize their caller:
 * `createGateway` puts the same guards before them as before the routes of a policy. `policyLimits`
 * are all limits of the policy. `admitAgain` admits the operator again if the call has a body.
 */
export function adminCalls(
  options: AdminOptions,
  policyLimits: ReadonlyMap<string, PolicyLimit>,
  admitAgain: Readmission,
): readonly AdminCall[] {
  const own = policyLimits.get(OPERATORS_LIMIT)
  const limits = own === undefined ? [] : [own]
  return [
    ...clientCalls(options, limits),
    ...apiKeyCalls(options, limits),
    ...revocationCalls(options, limits),
    ...banCalls(options, limits),
    ...limitCalls(options, policyLimits, limits),
    ...relationCalls(options, limits),
    ...checkCalls(options, limits),
    ...recordCalls(options, limits),
    ...erasureCalls(options, limits),
    ...tokenCalls(options, limits),
  ].map((call) => behindBody(call, demandStanding(admitAgain, call)))
}

/** Returns the same call, with a guard right before its last handler. */
function behindBody(call: AdminCall, guard: MiddlewareHandler): AdminCall {
  return { ...call, handlers: [...call.handlers.slice(0, -1), guard, ...call.handlers.slice(-1)] }
}
