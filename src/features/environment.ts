/**
 * The environment with the variables of every feature, for programs that have no policy: the command
 * line, and apps made of parts.
 */

import { decisionPointVariables, readDecisionPoints } from '../validators/decision-points.ts'
import {
  type Config,
  type EnvironmentCheck,
  type EnvironmentSchema,
  environmentWith,
  parseEnvironment,
  redisVariables,
} from '../validators/environment.ts'
import { markKeyless } from '../validators/issuer.ts'
import { issuerClientsOf, issuerClientVariables } from '../validators/issuer-client.ts'
import { clientsOf, clientVariables } from './authorization-server/schemas/client.ts'
import { consoleVariables } from './console/schema.ts'
import { readTraces, traceVariables } from './otlp/schema.ts'
import { keylessIssuers } from './sign-in/keyless-issuers.ts'
import { signalVariables } from './signals/schema.ts'

export const EVERY_FEATURE = [
  issuerClientVariables,
  clientVariables,
  traceVariables,
  decisionPointVariables,
  signalVariables,
  consoleVariables,
] as const

/** The environment on Workers. */
export const environmentSchema = environmentWith(redisVariables, EVERY_FEATURE)

/** The configuration with that of every feature. */
export interface WholeConfig extends Omit<Config, 'variables'> {
  readonly clients: ReturnType<typeof clientsOf>
  readonly issuerClients: ReturnType<typeof issuerClientsOf>
  readonly traces: ReturnType<typeof readTraces>
  readonly decisionPoints: ReturnType<typeof readDecisionPoints>
}

/**
 * Throws one `Misconfigured` that names every invalid variable.
 *
 * @param schema of the runtime. Default: of Workers
 * @param ofOrigins checks of the variables of origins. Default: there must be one origin
 */
export function parseConfig(
  env: unknown,
  schema: EnvironmentSchema = environmentSchema,
  ofOrigins?: readonly EnvironmentCheck[],
): WholeConfig {
  const { variables, ...config } = parseEnvironment(env, schema, ofOrigins)
  return {
    ...config,
    issuers: markKeyless(config.issuers, keylessIssuers({ variables })),
    clients: clientsOf({ variables }),
    issuerClients: issuerClientsOf({ variables }),
    traces: readTraces({ variables }),
    decisionPoints: readDecisionPoints({ variables }),
  }
}
