/** Derives the configuration of an environment from the files of a project. */
import { isAbsolute, join, resolve } from 'node:path'
import type { TomlTable, TomlValue } from 'smol-toml'
import { isNamedByPolicy } from '../../src/validators/environment.ts'
import { usage } from '../failure.ts'
import { isMain, namesIn, type Project, tableOf, tablesOf, type WorkerConfig } from './project.ts'

/** The default environment: its resources have the names in the files, without a suffix. */
export const PRODUCTION = 'production'
/** The folder of generated configurations and of files with values. Git must ignore it. */
export const STATE_FOLDER = '.portcullis'

const NAME = /^[a-z][a-z0-9-]{0,19}$/
/** Cloudflare's limit for Workers, queues and buckets. */
const MAX_NAME_CHARACTERS = 63
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i
const NO_ID = '00000000-0000-0000-0000-000000000000'

/** The audit Worker recognizes its dead letter queue by the end of the name. */
const DEAD_LETTERS = '-dead-letters'

/** Fields that name the place of production. Another environment does not inherit them. */
const OWN_FIELDS = ['route', 'routes']
const OWN_VARIABLES = ['PUBLIC_URL', 'ORIGIN_URL']

export interface EnvironmentWorker extends WorkerConfig {
  /** The configuration for wrangler, with absolute paths. Databases may have no id yet. */
  readonly table: TomlTable
}

/** One environment of a project, with its Workers. */
export interface Environment {
  readonly name: string
  /** Absolute path of the folder of its generated files. */
  readonly folder: string
  /** In the order of {@link Project.workers}. */
  readonly workers: readonly EnvironmentWorker[]
  readonly queues: readonly string[]
  readonly databases: readonly Database[]
  readonly buckets: readonly string[]
}

export interface Database {
  readonly name: string
  /** The id in the file of the project; undefined if the API must be queried for it. */
  readonly id: string | undefined
}

/**
 * Returns the environment `name`. For another environment than production, Workers, queues, databases
 * and buckets get the suffix `-<name>`, keys in Redis get the prefix `pc-<name>:`, and routes,
 * `PUBLIC_URL`, `ORIGIN_URL`, `ORIGIN_URL_*` and the variables of credentials are not inherited. Fields of `[env.<name>]` replace those above
 * them, and variables of `[env.<name>.vars]` are added to those of `[vars]`.
 */
export function environmentOf(project: Project, name: string): Environment {
  requireName(name)
  const own = new Set(project.workers.map((worker) => worker.name))
  const workers = project.workers.map((worker) => workerOf(worker, name, own))
  const tables = workers.map(({ table }) => table)
  const queues = tables.flatMap(({ queues: value }) => {
    const { producers, consumers } = tableOf(value)
    return [
      ...namesIn(producers, 'queue'),
      ...namesIn(consumers, 'queue'),
      ...namesIn(consumers, 'dead_letter_queue'),
    ]
  })
  const databases = new Map<string, string | undefined>()
  for (const database of tables.flatMap((table) => tablesOf(table.d1_databases))) {
    const { database_name: databaseName, database_id: id } = database
    if (typeof databaseName !== 'string') throw usage('a D1 database has no database_name')
    databases.set(databaseName, isId(id) ? id : databases.get(databaseName))
  }
  const environment = {
    name,
    folder: join(project.folder, STATE_FOLDER, name),
    workers,
    queues: [...new Set(queues)].sort(),
    databases: [...databases].map(([databaseName, id]) => ({ name: databaseName, id })),
    buckets: [...new Set(tables.flatMap((table) => namesIn(table.r2_buckets, 'bucket_name')))],
  }
  checkLengths(environment)
  return environment
}

/** Throws a usage failure if `name` cannot be the name of an environment. */
export function requireName(name: string): void {
  if (NAME.test(name)) return
  throw usage('--env must be 1 to 20 lower-case letters, digits and hyphens, such as staging')
}

function checkLengths({ workers, queues, databases, buckets }: Environment): void {
  const names = [
    ...workers.map((worker) => worker.name),
    ...queues,
    ...databases.map((database) => database.name),
    ...buckets,
  ]
  const long = names.find((name) => name.length > MAX_NAME_CHARACTERS)
  if (long !== undefined) {
    throw usage(`the name ${long} is longer than ${MAX_NAME_CHARACTERS} characters; shorten --env`)
  }
}

/** Reports whether a value is the id of a database, and not the placeholder of a new project. */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value) && value !== NO_ID
}

function workerOf(worker: WorkerConfig, name: string, own: ReadonlySet<string>): EnvironmentWorker {
  const { env, ...base } = worker.table
  const inherited = name === PRODUCTION ? base : renamed(base, name, own)
  const changes = tableOf(tableOf(env)[name])
  const table = {
    ...inherited,
    ...changes,
    vars: { ...tableOf(inherited.vars), ...tableOf(changes.vars) },
  }
  // Only the gateway, or the app, has an address of its own.
  const hidden = isMain(worker) ? {} : { workers_dev: false, preview_urls: false }
  const complete = withAbsolutePaths({ ...hidden, ...table }, worker.folder)
  return { ...worker, name: String(complete.name), table: complete }
}

/** Returns the configuration with the names of another environment. */
function renamed(table: TomlTable, name: string, own: ReadonlySet<string>): TomlTable {
  function suffixed(value: TomlValue | undefined): TomlValue {
    if (typeof value !== 'string') return value ?? ''
    const end = value.endsWith(DEAD_LETTERS) ? DEAD_LETTERS : ''
    return `${value.slice(0, value.length - end.length)}-${name}${end}`
  }
  const fields = Object.entries(table).filter(([field]) => !OWN_FIELDS.includes(field))
  const result: TomlTable = { ...Object.fromEntries(fields), name: suffixed(table.name) }
  const variables = Object.entries(tableOf(table.vars)).filter(
    ([variable]) => !OWN_VARIABLES.includes(variable) && !isNamedByPolicy(variable),
  )
  result.vars = { ...Object.fromEntries(variables), REDIS_PREFIX: `pc-${name}:` }
  const replace = (tables: unknown, names: readonly string[]) =>
    tablesOf(tables).map((one) => {
      const present = names.filter((field) => field in one)
      return {
        ...one,
        ...Object.fromEntries(present.map((field) => [field, suffixed(one[field])])),
      }
    })
  if (table.queues !== undefined) {
    const { producers, consumers } = tableOf(table.queues)
    result.queues = {
      producers: replace(producers, ['queue']),
      consumers: replace(consumers, ['queue', 'dead_letter_queue']),
    }
  }
  if (table.d1_databases !== undefined) {
    // The id is that of production's database.
    result.d1_databases = replace(table.d1_databases, ['database_name']).map(
      ({ database_id, ...rest }) => rest,
    )
  }
  if (table.r2_buckets !== undefined) result.r2_buckets = replace(table.r2_buckets, ['bucket_name'])
  if (table.services !== undefined) {
    result.services = tablesOf(table.services).map((one) =>
      own.has(String(one.service)) ? { ...one, service: suffixed(one.service) } : one,
    )
  }
  return result
}

/** Returns the table with absolute paths: the generated file is in another folder. */
function withAbsolutePaths(table: TomlTable, folder: string): TomlTable {
  const absolute = (value: TomlValue | undefined) =>
    typeof value === 'string' && !isAbsolute(value) ? resolve(folder, value) : (value ?? '')
  const result: TomlTable = { ...table }
  for (const field of ['main', 'base_dir', 'tsconfig'])
    if (field in table) result[field] = absolute(table[field])
  const nested = [
    ['assets', 'directory'],
    ['site', 'bucket'],
    ['build', 'cwd'],
    ['build', 'watch_dir'],
  ] as const
  for (const [field, member] of nested) {
    const inner = tableOf(result[field])
    if (member in inner) result[field] = { ...inner, [member]: absolute(inner[member]) }
  }
  if (table.d1_databases !== undefined) {
    result.d1_databases = tablesOf(table.d1_databases).map((one) =>
      'migrations_dir' in one ? { ...one, migrations_dir: absolute(one.migrations_dir) } : one,
    )
  }
  return result
}

/** Returns the configuration with the ids of its databases, and with more variables. */
export function completed(
  table: TomlTable,
  ids: ReadonlyMap<string, string>,
  variables: Readonly<Record<string, string>>,
): TomlTable {
  // Wrangler does not find a `tsconfig` of a configuration in another folder than its own: it is an argument.
  const { tsconfig, ...fields } = table
  const result: TomlTable = { ...fields, vars: { ...tableOf(table.vars), ...variables } }
  if (table.d1_databases !== undefined) {
    result.d1_databases = tablesOf(table.d1_databases).map((one) => ({
      ...one,
      database_id: ids.get(String(one.database_name)) ?? NO_ID,
    }))
  }
  return result
}

/** Returns the arguments with which wrangler deploys a Worker from its generated configuration. */
export function deployArguments(
  environment: Environment,
  worker: EnvironmentWorker,
): readonly string[] {
  const { tsconfig } = worker.table
  const config = ['deploy', '-c', generatedFile(environment, worker)]
  return typeof tsconfig === 'string' ? [...config, '--tsconfig', tsconfig] : config
}

/** Reports whether the environment is that of an app that guards its own routes. */
export const isOfApp = ({ workers }: Environment): boolean => workers.at(-1)?.role === 'app'

/** Returns the path of the generated configuration of a Worker. */
export function generatedFile({ folder }: Environment, worker: EnvironmentWorker): string {
  return join(folder, isMain(worker) ? 'wrangler.toml' : `${worker.name}.toml`)
}
