/** The operators' API: every call of it, with what guards it and what it is told to be. */
import type { MiddlewareHandler } from 'hono'
import type { Readmission } from '../middleware/readmit.ts'
import type { PolicyLimit } from '../policy.ts'
import { apiKeyCalls } from './admin/api-keys.ts'
import { banCalls } from './admin/bans.ts'
import type { AdminCall } from './admin/call.ts'
import { checkCalls } from './admin/check.ts'
import { clientCalls } from './admin/clients.ts'
import { erasureCalls } from './admin/erasures.ts'
import { limitCalls } from './admin/limits.ts'
import { recordCalls } from './admin/records.ts'
import { relationCalls } from './admin/relations.ts'
import { revocationCalls } from './admin/revocations.ts'
import { demandStanding } from './admin/standing.ts'
import type { AdminOptions } from './admin/stores.ts'
import { tokenCalls } from './admin/tokens.ts'

export type { AdminCall } from './admin/call.ts'
export type { AdminOptions, AdminStores } from './admin/stores.ts'

/** The limit of this name counts operators' requests, where a policy has it. */
const OPERATORS_LIMIT = 'operators'

/**
 * All calls below `/-/admin`. They decide nothing about their caller: `createGateway` puts the same
 * guards before them as before the routes of a policy. `policyLimits` are all limits of the policy,
 * `admitAgain` asks again about an operator whose call has a body.
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

/** The same call, with a guard right before it does what it is for. */
function behindBody(call: AdminCall, guard: MiddlewareHandler): AdminCall {
  return { ...call, handlers: [...call.handlers.slice(0, -1), guard, ...call.handlers.slice(-1)] }
}
