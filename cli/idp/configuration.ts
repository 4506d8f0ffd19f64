/** Reads the entries of `ISSUERS` to compare with. */
import { Misconfigured } from '../../src/errors.ts'
import { type Mistake, mistakeAt } from '../../src/problems/mistake.ts'
import { parseConfiguration } from '../../src/validators/configuration.ts'
import { type IssuerConfig, issuers } from '../../src/validators/issuer.ts'
import { devVarsAround } from '../connection.ts'
import { configuredVariables, readValues } from '../deploy/values.ts'
import { checkProject } from '../doctor/project.ts'
import { usage } from '../failure.ts'
import { jsonIn } from '../json.ts'
import { issuersOfProject } from '../policy/issuers.ts'
import { projectAround } from '../project.ts'
import { readText } from '../text-file.ts'
import type { Fields } from './check.ts'

export interface IdpDoctorOptions {
  readonly json?: boolean
  /** `ISSUERS`: a file, or JSON. */
  readonly issuers?: string
  readonly env: string
  readonly values?: string
  /** The issuer that is meant, and may be called. */
  readonly issuer?: string
  readonly audience?: readonly string[]
  readonly preset?: string
  readonly yes?: boolean
  readonly wide?: boolean
  /** Whether checks that passed are shown. */
  readonly all?: boolean
}

/** Returns the fields of an entry that options give. */
export function fieldsOf({ audience, preset }: Pick<IdpDoctorOptions, 'audience' | 'preset'>) {
  return {
    ...(preset !== undefined && { preset }),
    ...(audience !== undefined && { audience: audience.length === 1 ? audience[0] : audience }),
  }
}

export interface Entry {
  /** Its position in `ISSUERS`. Undefined for an entry that options or a token describe. */
  readonly index: number | undefined
  readonly fields: Fields
  /** One for each tenant. Empty if the entry is not valid. */
  readonly configs: readonly IssuerConfig[]
}

export interface Entries {
  /** Undefined if there is no `ISSUERS`. */
  readonly all: readonly Entry[] | undefined
  /** By the schema of the gateway. Contains no values. */
  readonly mistakes: readonly Mistake[]
}

/**
 * Returns the entries of the option, or else of the variable `ISSUERS`: from the environment, from
 * the file of an environment, from `.dev.vars`, or from `[vars]` in `wrangler.toml`; or else of the policy. Throws a usage
 * failure for a file that cannot be read.
 */
export async function readEntries(options: IdpDoctorOptions): Promise<Entries> {
  const text =
    options.issuers === undefined ? await configuredIssuers(options) : given(options.issuers)
  if (text === undefined) return { all: undefined, mistakes: [] }
  const value = jsonIn(text)
  if (typeof value !== 'object' || value === null) {
    if (options.issuers !== undefined) throw usage('--issuers is neither a file nor JSON')
    return { all: [], mistakes: [mistakeAt('invalid_type', ['ISSUERS'], 'must be a JSON array')] }
  }
  const list = [value].flat() as readonly Fields[]
  const { mistakes } = parsed(list)
  const all = list.map((fields, index) => ({ index, fields, configs: parsed([fields]).configs }))
  return { all, mistakes }
}

function given(text: string): string {
  if (/^\s*[[{]/.test(text)) return text
  try {
    return readText(text)
  } catch {
    throw usage('--issuers is neither JSON nor a file that can be read')
  }
}

async function configuredIssuers({
  env,
  values: file,
}: IdpDoctorOptions): Promise<string | undefined> {
  const folder = process.cwd()
  const root = projectAround(folder)
  const { environment } = checkProject(root, env, new Date().toISOString().slice(0, 10))
  const values = readValues({ folder: root ?? folder, environment: env }, file, process.env)
  const inFile = environment && configuredVariables(environment)
  const set = values.ISSUERS ?? devVarsAround(folder).ISSUERS ?? inFile?.ISSUERS
  return set ?? (await issuersOfProject(root))
}

/** Returns the configurations of entries, or what is wrong with them. */
export function parsed(entries: readonly unknown[]): {
  readonly configs: readonly IssuerConfig[]
  readonly mistakes: readonly Mistake[]
} {
  try {
    return {
      configs: parseConfiguration('The environment', issuers, entries, ['ISSUERS']),
      mistakes: [],
    }
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    return { configs: [], mistakes: error.found }
  }
}
