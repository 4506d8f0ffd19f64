/** The values of an environment: from this process, from its file, and from the configuration. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { toDotPath } from 'zod/v4/core'
import { Misconfigured } from '../../src/errors.ts'
import { environmentSchema, parseConfig } from '../../src/features/environment.ts'
import { type Mistake, mistakeAt } from '../../src/problems/mistake.ts'
import {
  BOTH_HAVE_ISSUERS,
  isNamedByPolicy,
  originChecksFor,
} from '../../src/validators/environment.ts'
import { Failure, USAGE, usage } from '../failure.ts'
import { readVariables } from '../text-file.ts'
import { type Environment, STATE_FOLDER } from './environment.ts'
import { namesIn, tableOf } from './project.ts'

/** Values by the name of their variable. */
export type Values = Readonly<Record<string, string>>

/**
 * Variables of the gateway that can have a value of their own; a binding cannot. `REDIS_URL` in the
 * environment of a command is for `npm start`.
 */
export const GATEWAY_VARIABLES: readonly string[] = Object.keys(environmentSchema.shape).filter(
  (name) => name !== 'ORIGIN' && name !== 'REDIS_URL',
)
/** Secrets of the audit Worker. */
export const AUDIT_VARIABLES: readonly string[] = ['AUDIT_SIGNING_KEYS']
export const CREDENTIALS = ['CLOUDFLARE_API_TOKEN', 'CLOUDFLARE_ACCOUNT_ID'] as const

/** Placeholder for a value that only Cloudflare has, so that the other values can be checked. */
const UNKNOWN: Values = {
  UPSTASH_REDIS_REST_URL: 'https://redis.invalid',
  UPSTASH_REDIS_REST_TOKEN: 'unknown',
  PUBLIC_URL: 'https://gateway.invalid',
  ORIGIN_URL: 'https://origin.invalid',
}

/** Whose values are read. */
export interface ValuesOf {
  readonly folder: string
  readonly environment: string
}

/** Returns the file with the values of an environment that is read if no other is named. */
const valuesFile = (folder: string, environment: string): string =>
  join(folder, STATE_FOLDER, `${environment}.env`)

/**
 * Returns the values that a deployment uses. Variables of `processEnv` take precedence over those
 * of the file. Empty values count as absent. Throws a usage failure if a named file cannot be read.
 */
export function readValues(
  of: ValuesOf,
  named: string | undefined,
  processEnv: NodeJS.ProcessEnv,
): Values {
  const all = allValues(of, named, processEnv)
  const ofOrigins = Object.keys(all).filter(isNamedByPolicy)
  const names = new Set([...GATEWAY_VARIABLES, ...AUDIT_VARIABLES, ...CREDENTIALS, ...ofOrigins])
  return Object.fromEntries(Object.entries(all).filter(([name]) => names.has(name)))
}

/** Returns what {@link readValues} reads, with the variables of features and of other programs. */
export function allValues(
  of: ValuesOf,
  named: string | undefined,
  processEnv: NodeJS.ProcessEnv,
): Values {
  const inFile = valuesInFile(of, named)
  const values: Record<string, string> = {}
  for (const [name, value] of [...Object.entries(inFile), ...Object.entries(processEnv)])
    if (value) values[name] = value
  return values
}

/** Returns the values in the named file, or in that of the environment if there is one. */
export function valuesInFile(
  { folder, environment }: ValuesOf,
  named: string | undefined,
): NodeJS.Dict<string> {
  if (named !== undefined) return valuesIn(named)
  const file = valuesFile(folder, environment)
  return existsSync(file) ? variablesIn(file) : {}
}

/** Returns the values in the file of `--values`. Throws a usage failure if it cannot be read. */
export function valuesIn(named: string): NodeJS.Dict<string> {
  if (!existsSync(named)) throw usage(`--values: ${named} does not exist`)
  return variablesIn(named)
}

function variablesIn(file: string): NodeJS.Dict<string> {
  try {
    return readVariables(file)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw usage(`${file} cannot be read; it must be a file that you may read`)
  }
}

/** Returns the variables of the gateway in its configuration. */
export function configuredVariables({ workers }: Environment): Values {
  const vars = tableOf(workers.at(-1)?.table.vars)
  return Object.fromEntries(Object.entries(vars).map(([name, value]) => [name, String(value)]))
}

/**
 * Returns what is wrong with the values of the gateway, by its own schema.
 * `stored` are the names of secrets that Cloudflare has already; their values are unknown. `ofPolicy` is `ISSUERS` of a
 * policy with issuers of its own.
 */
export function mistakesIn(
  environment: Environment,
  values: Values,
  stored: readonly string[],
  ofPolicy?: string,
): readonly Mistake[] {
  const bindings = namesIn(environment.workers.at(-1)?.table.services, 'binding')
  const assumed = Object.entries(UNKNOWN).filter(([name]) => stored.includes(name))
  const given: Values = {
    ...Object.fromEntries(assumed),
    ...configuredVariables(environment),
    ...Object.fromEntries(Object.entries(values).filter(([name]) => isOfGateway(name))),
  }
  const names = [...Object.keys(given), ...stored]
  // Also a stored variable, whose value is unknown, would stop the gateway.
  if (ofPolicy !== undefined && names.includes('ISSUERS'))
    return [mistakeAt('conflict', ['ISSUERS'], BOTH_HAVE_ISSUERS)]
  try {
    const variables = {
      ...(ofPolicy !== undefined && { ISSUERS: ofPolicy }),
      ...given,
      ...(bindings.includes('ORIGIN') && { ORIGIN: {} }),
    }
    parseConfig(variables, environmentSchema, originChecksFor(names))
    return []
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    return error.found.filter(({ path: [name = ''] }) => {
      return !(stored.includes(String(name)) && values[name] === undefined)
    })
  }
}

const isOfGateway = (name: string): boolean =>
  GATEWAY_VARIABLES.includes(name) || isNamedByPolicy(name)

/** Returns the names of absent credentials, in the form of {@link mistakesIn}. */
export function missingCredentials(values: Values): readonly Mistake[] {
  return CREDENTIALS.filter((name) => values[name] === undefined).map((name) =>
    mistakeAt('missing', [name], 'is missing'),
  )
}

/** Creates the failure for incomplete or wrong values. Nothing was created. */
export function incomplete(
  folder: string,
  environment: string,
  mistakes: readonly Mistake[],
): Failure {
  const findings = mistakes.map((mistake) => ({
    ...mistake,
    in: '',
    path: toDotPath([...mistake.path]),
  }))
  const where = valuesFile(folder, environment)
  return new Failure(
    USAGE,
    'values_incomplete',
    `nothing was created or deployed: values of the environment ${environment} are missing or wrong. Write them to ${where}, or set them in the environment of this command`,
    { findings },
  )
}
