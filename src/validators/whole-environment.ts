/**
 * The environment with the variables of every feature, for programs that have no policy: the command
 * line, and apps made of parts.
 */
import type * as z from 'zod/mini'
import { clientsOf, clientVariables } from './client.ts'
import { decisionPointsOf, decisionPointVariables } from './decision-points.ts'
import {
  type EnvironmentCheck,
  type EnvironmentSchema,
  environmentWith,
  parseEnvironment,
  redisVariables,
} from './environment.ts'
import { issuerClientsOf, issuerClientVariables } from './issuer-client.ts'
import { tracesOf, traceVariables } from './traces.ts'

export const EVERY_FEATURE = [
  issuerClientVariables,
  clientVariables,
  traceVariables,
  decisionPointVariables,
] as const

type Shape = typeof issuerClientVariables.shape &
  typeof clientVariables.shape &
  typeof traceVariables.shape &
  typeof decisionPointVariables.shape

/** The variables as a user sets them. */
export type EnvironmentInput = z.input<EnvironmentSchema> & z.input<z.ZodMiniObject<Shape>>

/** The environment on Workers. */
export const environmentSchema = environmentWith(redisVariables, EVERY_FEATURE)

/**
 * Throws one `Misconfigured` that names every invalid variable.
 *
 * @param schema of the runtime. Default: of Workers
 * @param ofOrigins checks of the variables of origins. Default: there must be one origin
 */
export function parseConfig(
  env: unknown,
  schema = environmentSchema,
  ofOrigins?: readonly EnvironmentCheck[],
) {
  const { variables, ...config } = parseEnvironment(env, schema, ofOrigins)
  return {
    ...config,
    clients: clientsOf({ variables }),
    issuerClients: issuerClientsOf({ variables }),
    traces: tracesOf({ variables }),
    decisionPoints: decisionPointsOf({ variables }),
  }
}

export type WholeConfig = Readonly<ReturnType<typeof parseConfig>>
