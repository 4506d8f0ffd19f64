/** People as operators: browser sessions of the sign-in, for the operators' calls. */

import type { MiddlewareHandler } from 'hono'
import * as z from 'zod/mini'
import { Denied } from '../../errors.ts'
import type { FeatureParts } from '../../gateway/feature.ts'
import { callerOf } from '../../middleware/context.ts'
import { stepUp } from '../../middleware/step-up.ts'
import type { AuthenticationDemand } from '../../policy/definition.ts'
import type { CallFrame } from '../../routes/admin/frame.ts'
import { authenticationSchema } from '../../validators/authentication.ts'
import { SESSION_STAGES } from '../sign-in/signed-in.ts'

export interface PeopleDefinition {
  /**
   * What the login of a session must be for calls that change something, in addition to the permission.
   * Tokens are not affected. Default: any login.
   */
  readonly authentication?: AuthenticationDemand | undefined
}

/** What a change of their demand means, for `policy diff`. */
export const DEMAND_EFFECTS = {
  'authentication.acr': 'bound',
  'authentication.maxAgeSeconds': 'bound',
} as const

/** The option `sessions`. */
export const peopleSchema = z.union([
  z.boolean(),
  z.strictObject({ authentication: z.optional(authenticationSchema) }),
])

export interface PeopleOptions extends PeopleDefinition {
  /** Whether a navigation without a session leads to the sign-in. Default false: a call is refused (401). */
  readonly asksForLogin?: boolean
  /** Reports whether a person caused a request, so that it keeps the session alive. Default: every request does. */
  readonly isAttended?: (url: URL) => boolean
}

/**
 * Returns what accepts sessions for calls: none without the sign-in. A session needs the permission of the call, as a
 * token does. Requests with an unsafe method must come from a page of this gateway. Only sessions of the host of
 * `PUBLIC_URL` are accepted: the pages of another host may belong to somebody else.
 */
export function peopleOf(
  parts: FeatureParts,
  { authentication, asksForLogin = false, isAttended }: PeopleOptions,
): CallFrame['acceptPeople'] {
  const createStages = SESSION_STAGES.of(parts)
  if (createStages === undefined) return undefined
  const { now } = parts
  const reading = createStages({ asksForLogin, isAttended })
  const changing =
    authentication === undefined
      ? reading
      : createStages({ asksForLogin, isAttended, demand: authentication })
  const guards = [
    requireMainHost,
    ...(authentication === undefined ? [] : [ofSessions(stepUp({ demand: authentication, now }))]),
  ]
  return (changes) =>
    changes
      ? { ...changing, admitted: [...guards, ...changing.admitted] }
      : { ...reading, admitted: [requireMainHost, ...reading.admitted] }
}

/** Another login at that host would not help, so the answer leads to none. */
const requireMainHost: MiddlewareHandler = function requireMainHost(c, next) {
  if (callerOf(c, 'requireMainHost')?.signIn?.host !== undefined)
    throw new Denied({ code: 'not_found' })
  return next()
}

/** Applies a stage to callers with a browser session only. */
function ofSessions(guard: MiddlewareHandler): MiddlewareHandler {
  return function ofSessions(c, next) {
    return callerOf(c, 'ofSessions')?.signIn === undefined ? next() : guard(c, next)
  }
}
