/** Reads the configuration files of a project and finds its Workers. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parse, TomlError, type TomlTable } from 'smol-toml'
import { CREATE_COMMAND, hasPolicy, isNodeFolder } from '../../dev/start/main-config.ts'
import { usage } from '../failure.ts'

/** The configuration of the gateway, in the folder of the project. */
export const GATEWAY_FILE = 'wrangler.toml'

/** The folders with `*.toml` files that may describe further Workers. */
const WORKER_FOLDERS = ['', 'workers'] as const

/** `app`: a Worker that guards its own routes, in place of a gateway. */
export type WorkerRole = 'gateway' | 'app' | 'audit' | 'origin'

/** A Worker of the project and its configuration for wrangler. */
export interface WorkerConfig {
  readonly role: WorkerRole
  /** Path of the file from the folder of the project. */
  readonly file: string
  /** Absolute path of the folder to which the paths in the file are relative. */
  readonly folder: string
  readonly name: string
  readonly table: TomlTable
}

/** Reports whether a Worker is the one that has an address. */
export const isMain = ({ role }: Pick<WorkerConfig, 'role'>): boolean =>
  role === 'gateway' || role === 'app'

export interface Project {
  /** Absolute path. */
  readonly folder: string
  /** The Workers in the order of their dependencies; the gateway, or the app, is the last one. */
  readonly workers: readonly WorkerConfig[]
}

/**
 * Reads the project in `folder`. The gateway is in `wrangler.toml`. The audit Worker is the one that
 * consumes a queue of the gateway, and an origin is one that the gateway binds as a service: in
 * another `*.toml` file of the folder, or of its folder `workers`. An app in `wrangler.toml` is the only
 * Worker. Throws a usage failure if there is neither, or if a file is not valid.
 */
export function readProject(folder: string): Project {
  if (isNodeFolder(folder))
    throw usage(
      `${folder} is a gateway on Node, and this command deploys to Cloudflare; for Node, see docs/self-hosting.md: ` +
        'install it on the machine or build its image, and undo a deployment with the earlier folder or image',
    )
  if (!existsSync(join(folder, GATEWAY_FILE))) {
    throw usage(
      `${folder} has no ${GATEWAY_FILE}; run this command in the folder of your gateway, or create one: ${CREATE_COMMAND}`,
    )
  }
  const role = isApp(folder) ? 'app' : 'gateway'
  const gateway = readWorker(folder, GATEWAY_FILE, role)
  if (gateway === undefined) throw usage(`${GATEWAY_FILE} must have the fields name and main`)
  if (role === 'app') return { folder, workers: [gateway] }
  const produced = namesIn(tableOf(gateway.table.queues).producers, 'queue')
  const bound = namesIn(gateway.table.services, 'service')
  const others = otherFiles(folder).flatMap((file) => readWorker(folder, file, 'audit') ?? [])
  const consumes = ({ table }: WorkerConfig) =>
    namesIn(tableOf(table.queues).consumers, 'queue').some((queue) => produced.includes(queue))
  const origins = others
    .filter((worker) => bound.includes(worker.name))
    .map((worker) => ({ ...worker, role: 'origin' as const }))
  return { folder, workers: [...origins, ...others.filter(consumes), gateway] }
}

/** The modules that guard an app of the user. */
const GUARDS = /['"]portcullis\/(?:hono|fetch|express)['"]/

/**
 * Reports whether the Worker of the folder is an app that guards its own routes: it has no policy file, and its module
 * imports a guard.
 */
export function isApp(folder: string): boolean {
  if (hasPolicy(folder) || !existsSync(join(folder, GATEWAY_FILE))) return false
  const main = mainIn(readFileSync(join(folder, GATEWAY_FILE), 'utf8'))
  const file = join(folder, main)
  return main !== '' && existsSync(file) && GUARDS.test(readFileSync(file, 'utf8'))
}

/** Returns the main module that a configuration names; empty: the command itself reports its mistakes. */
function mainIn(text: string): string {
  try {
    return String(parse(text).main ?? '')
  } catch {
    return ''
  }
}

function otherFiles(folder: string): readonly string[] {
  return WORKER_FOLDERS.flatMap((name) => {
    const path = join(folder, name)
    if (!existsSync(path)) return []
    return readdirSync(path)
      .filter((file) => file.endsWith('.toml'))
      .map((file) => join(name, file))
  })
    .filter((file) => file !== GATEWAY_FILE)
    .sort()
}

/** Returns undefined for a file that describes no Worker. */
function readWorker(folder: string, file: string, role: WorkerRole): WorkerConfig | undefined {
  const path = join(folder, file)
  const table = readToml(path, relative(folder, path))
  const { name, main } = table
  if (typeof name !== 'string' || typeof main !== 'string') return undefined
  return { role, file, folder: dirname(path), name, table }
}

function readToml(path: string, shown: string): TomlTable {
  try {
    return parse(readFileSync(path, 'utf8'))
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const [why = ''] = error.message.split('\n')
    throw usage(`${shown}:${error.line}:${error.column}: ${why}`)
  }
}

/** Returns a value as a table; anything else counts as an empty one. */
export function tableOf(value: unknown): TomlTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as TomlTable)
    : {}
}

/** Returns the tables of an array of tables; anything else counts as an empty one. */
export function tablesOf(value: unknown): readonly TomlTable[] {
  return Array.isArray(value) ? value.map(tableOf) : []
}

/** Returns the texts that the tables of an array have in `field`. */
export function namesIn(value: unknown, field: string): readonly string[] {
  return tablesOf(value)
    .map((table) => table[field])
    .filter((name) => typeof name === 'string')
}
