/** The operators' API: `import { operators } from 'portcullis/operators'`. */

import * as z from 'zod/mini'
import type { Feature } from '../../gateway/feature.ts'
import type { AdminCall } from '../../routes/admin/call.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { wholeNumber } from '../../validators/schema-parts.ts'
import { clientVariables } from '../authorization-server/schemas/client.ts'
import { type AdminContext, createContext } from './admin-context.ts'
import { apiKeyCalls } from './api-keys.ts'
import { banCalls } from './bans.ts'
import { clientCalls } from './clients.ts'
import { explanationCalls } from './explanations.ts'
import { limitCalls } from './limits.ts'
import { DEMAND_EFFECTS, type PeopleDefinition, peopleOf, peopleSchema } from './people.ts'
import { planCalls } from './plans.ts'
import { recordCalls } from './records.ts'
import { revocationCalls } from './revocations.ts'
import { tokenCalls } from './tokens.ts'

const MAX_ENDED_API_KEY_DAYS = 3_650
const DAY_SECONDS = 86_400

export interface OperatorsOptions {
  /**
   * Days for which API keys that have expired or were revoked stay listed, so that their use can be
   * billed: 1 to 3,650. Default 100.
   */
  readonly endedApiKeyDays?: number
  /**
   * Whether the calls accept the browser session of a person whose role has the permission of the call. Needs
   * `signIn()`. With `{ authentication: { maxAgeSeconds: 900 } }`, calls that change something also need a recent
   * or stronger login. Default false: only tokens and API keys are accepted.
   */
  readonly sessions?: boolean | PeopleDefinition
}

const optionsSchema = z.strictObject({
  endedApiKeyDays: z._default(wholeNumber(1, MAX_ENDED_API_KEY_DAYS), 100),
  sessions: z._default(peopleSchema, false),
})

/**
 * Returns the calls below `/-/admin`, for the policy's `features`. The command line uses them. Throws
 * `Misconfigured` for a mistake in the options.
 */
export function operators(options: OperatorsOptions = {}): Feature {
  const { endedApiKeyDays, sessions } = parseConfiguration('The policy', optionsSchema, options, [
    'operators',
  ])
  return {
    name: 'operators',
    presence: 'more',
    settings: {
      endedApiKeyDays,
      sessions: sessions !== false,
      ...(typeof sessions === 'object' && sessions),
    },
    effects: { endedApiKeyDays: 'none', sessions: 'more', ...DEMAND_EFFECTS },
    ...(sessions !== false && { requires: ['signIn'] }),
    variables: clientVariables,
    create(parts) {
      const context = createContext(parts, endedApiKeyDays * DAY_SECONDS)
      const people = sessions === true ? {} : sessions
      return {
        calls() {
          const peopleDemand = people === false ? undefined : people.authentication
          const acceptPeople = people === false ? undefined : peopleOf(parts, people)
          return [
            ...GROUPS,
            ...parts
              .contributed()
              .contributions.flatMap(({ operatorCalls }) => operatorCalls ?? []),
          ].flatMap((callsOf) => callsOf({ ...context, acceptPeople, peopleDemand }))
        },
      }
    },
  }
}

const GROUPS: readonly ((context: AdminContext) => readonly AdminCall[])[] = [
  clientCalls,
  apiKeyCalls,
  revocationCalls,
  banCalls,
  limitCalls,
  planCalls,
  recordCalls,
  tokenCalls,
  explanationCalls,
]
