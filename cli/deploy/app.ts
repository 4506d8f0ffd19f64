/** The values of an app that guards its own routes. Its code determines their names. */
import { type Mistake, mistakeAt } from '../../src/problems/mistake.ts'
import type { Environment, EnvironmentWorker } from './environment.ts'
import { tableOf } from './project.ts'
import {
  CREDENTIALS,
  configuredVariables,
  type Values,
  type ValuesOf,
  valuesInFile,
} from './values.ts'

/** The secrets of most apps. They are sent if they are only in the environment of the command, too. */
const USUAL = ['UPSTASH_REDIS_REST_URL', 'UPSTASH_REDIS_REST_TOKEN']

/** Says where the command calls the app. An app that reads it has it in `[vars]`. */
const ADDRESS = 'PUBLIC_URL'

/**
 * Returns the values that a deployment of the app uses: those of its file, and the usual ones. For the usual ones,
 * variables of `processEnv` take precedence: another name of the file can have another meaning in a shell, such as `USER`.
 * Empty values count as absent.
 */
export function readAppValues(
  of: ValuesOf,
  named: string | undefined,
  processEnv: NodeJS.ProcessEnv,
): Values {
  const inFile = valuesInFile(of, named)
  const usual = new Set([...USUAL, ADDRESS, ...CREDENTIALS])
  const values: Record<string, string> = {}
  for (const name of new Set([...Object.keys(inFile), ...usual])) {
    const value = (usual.has(name) && processEnv[name]) || inFile[name]
    if (value) values[name] = value
  }
  return values
}

/** Returns the names of the values that become secrets of the app. */
export const secretsOfApp = ({ table }: EnvironmentWorker, values: Values): readonly string[] =>
  Object.keys(values).filter((name) => isOfApp(name) && !(name in tableOf(table.vars)))

/**
 * Returns what is wrong with the values: a name that `[secrets]` of `wrangler.toml` requires has no value, neither here nor
 * in `stored`, the names of secrets that Cloudflare has; or a value is for a name in `[vars]`.
 */
export function mistakesInApp(
  environment: Environment,
  values: Values,
  stored: readonly string[],
): readonly Mistake[] {
  const variables = configuredVariables(environment)
  const { required } = tableOf(environment.workers.at(-1)?.table.secrets)
  const names = Array.isArray(required) ? required.map(String) : []
  return [
    ...names
      .filter((name) => values[name] === undefined && !stored.includes(name))
      .map((name) => mistakeAt('missing', [name], 'is missing')),
    ...Object.keys(values)
      .filter((name) => isOfApp(name) && name in variables)
      .map((name) =>
        mistakeAt('conflict', [name], 'is in [vars] of wrangler.toml too; remove one of them'),
      ),
  ]
}

const isOfApp = (name: string): boolean =>
  name !== ADDRESS && !CREDENTIALS.some((one) => one === name)
