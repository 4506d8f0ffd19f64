/** Decides what a deployment has to do, from the state of the account. Changes nothing. */

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Mistake } from '../../src/problems/mistake.ts'
import { isNamedByPolicy } from '../../src/validators/environment.ts'
import { Failure, refused } from '../failure.ts'
import { mistakesInApp, secretsOfApp } from './app.ts'
import type { Cloudflare } from './cloudflare.ts'
import { type Environment, type EnvironmentWorker, isOfApp } from './environment.ts'
import { tableOf, tablesOf, type WorkerRole } from './project.ts'
import {
  AUDIT_VARIABLES,
  configuredVariables,
  GATEWAY_VARIABLES,
  mistakesIn,
  type Values,
} from './values.ts'

export type ResourceKind = 'queue' | 'database' | 'bucket'

export interface Resource {
  readonly kind: ResourceKind
  readonly name: string
  readonly exists: boolean
}

export interface Migration {
  readonly database: string
  /** Undefined if the database does not exist yet. */
  readonly databaseId: string | undefined
  /** The configuration that names the folder of the migrations. */
  readonly worker: EnvironmentWorker
  /** File names, in their order. */
  readonly pending: readonly string[]
}

export interface Release {
  readonly worker: EnvironmentWorker
  readonly exists: boolean
  /** Names of the secrets that the deployment sends. */
  readonly sent: readonly string[]
  /** Names of the secrets that Cloudflare has and the deployment does not change. */
  readonly kept: readonly string[]
  /** Names of the secrets that the deployment creates. */
  readonly generated: readonly string[]
}

export interface Plan {
  readonly publicUrl: string
  readonly resources: readonly Resource[]
  readonly migrations: readonly Migration[]
  readonly releases: readonly Release[]
  /** Ids of the databases that exist, by name. */
  readonly databaseIds: ReadonlyMap<string, string>
  /** Mistakes in the values. A plan with mistakes must not be carried out. */
  readonly mistakes: readonly Mistake[]
}

interface PlanOptions {
  readonly environment: Environment
  readonly values: Values
  readonly cloudflare: Cloudflare
  /** Whether the first operator's client is created if there are no clients. */
  readonly createOperator: boolean
  /** `ISSUERS` of a policy with issuers of its own. */
  readonly issuers?: string | undefined
}

/** Reads the account and returns the plan. */
export async function makePlan(options: PlanOptions): Promise<Plan> {
  const { environment, cloudflare, values, issuers } = options
  const resources: Resource[] = []
  for (const name of environment.queues)
    resources.push({ kind: 'queue', name, exists: await cloudflare.hasQueue(name) })
  const databaseIds = new Map<string, string>()
  for (const { name, id } of environment.databases) {
    const found = id ?? (await cloudflare.databaseId(name))
    if (found !== undefined) databaseIds.set(name, found)
    resources.push({ kind: 'database', name, exists: found !== undefined })
  }
  for (const name of environment.buckets)
    resources.push({ kind: 'bucket', name, exists: await cloudflare.hasBucket(name) })
  const publicUrl = await publicUrlOf(environment, values, cloudflare)
  const releases: Release[] = []
  for (const worker of environment.workers)
    releases.push(releaseOf(worker, await cloudflare.secrets(worker.name), options))
  const stored = releases.at(-1)?.kept ?? []
  return {
    publicUrl,
    resources,
    migrations: await migrationsOf(environment, databaseIds, cloudflare),
    releases,
    databaseIds,
    mistakes: isOfApp(environment)
      ? mistakesInApp(environment, values, stored)
      : mistakesIn(environment, { ...values, PUBLIC_URL: publicUrl }, stored, issuers),
  }
}

/** The variables of a Worker that can be secrets. */
const VARIABLES: Readonly<Record<WorkerRole, readonly string[]>> = {
  gateway: GATEWAY_VARIABLES,
  app: [],
  audit: AUDIT_VARIABLES,
  origin: [],
}

/** Not secrets: each deployment says them. */
const PLAIN: readonly string[] = ['PUBLIC_URL', 'DEPLOYED_BY']

function releaseOf(
  worker: EnvironmentWorker,
  stored: readonly string[] | undefined,
  { values, createOperator }: PlanOptions,
): Release {
  const existing = stored ?? []
  const ofOrigins = worker.role === 'gateway' ? Object.keys(values).filter(isNamedByPolicy) : []
  const sent =
    worker.role === 'app'
      ? secretsOfApp(worker, values)
      : [...VARIABLES[worker.role], ...ofOrigins].filter(
          (name) => name in values && !PLAIN.includes(name),
        )
  const configured = tableOf(worker.table.vars)
  const isNew = (name: string) =>
    !existing.includes(name) && !sent.includes(name) && !(name in configured)
  const wanted = ['SIGNING_KEYS', ...(createOperator ? ['CLIENTS'] : [])]
  return {
    worker,
    exists: stored !== undefined,
    sent,
    kept: existing.filter((name) => !sent.includes(name)),
    generated: worker.role === 'gateway' ? wanted.filter(isNew) : [],
  }
}

/**
 * Returns the URL of the gateway: the value of `PUBLIC_URL`, else its first custom domain, else its
 * address on workers.dev. Throws a {@link Failure} if none of these exists.
 */
async function publicUrlOf(
  environment: Environment,
  values: Values,
  cloudflare: Cloudflare,
): Promise<string> {
  const named = values.PUBLIC_URL ?? configuredVariables(environment).PUBLIC_URL
  if (named !== undefined) return named.replace(/\/+$/, '')
  const gateway = environment.workers.at(-1)
  const domain = tablesOf(gateway?.table.routes).find(({ custom_domain }) => custom_domain === true)
  if (domain !== undefined) return `https://${String(domain.pattern)}`
  const subdomain = await cloudflare.subdomain()
  if (subdomain !== undefined && gateway?.table.workers_dev !== false)
    return `https://${gateway?.name}.${subdomain}.workers.dev`
  throw refused(
    'no_address',
    'the Worker would have no address: set PUBLIC_URL, or add a custom domain to [[routes]], or create a workers.dev subdomain in the dashboard',
  )
}

async function migrationsOf(
  { workers }: Environment,
  ids: ReadonlyMap<string, string>,
  cloudflare: Cloudflare,
): Promise<readonly Migration[]> {
  const migrations = new Map<string, Migration>()
  for (const worker of workers) {
    for (const { database_name, migrations_dir } of tablesOf(worker.table.d1_databases)) {
      const database = String(database_name)
      const folder = String(migrations_dir ?? join(worker.folder, 'migrations'))
      if (migrations.has(database) || !existsSync(folder)) continue
      const files = readdirSync(folder)
        .filter((file) => file.endsWith('.sql'))
        .sort()
      const databaseId = ids.get(database)
      const applied = databaseId === undefined ? [] : await cloudflare.appliedMigrations(databaseId)
      const pending = files.filter((file) => !applied.includes(file))
      migrations.set(database, { database, databaseId, worker, pending })
    }
  }
  return [...migrations.values()]
}

/** One line of a plan, for people and for `--json`. */
export interface Step {
  readonly action: 'create' | 'keep' | 'migrate' | 'deploy'
  readonly what: ResourceKind | 'worker' | 'secret'
  readonly name: string
  readonly detail: string
}

/** Returns the plan as a list of steps, in the order in which they run. */
export function stepsOf({ resources, migrations, releases }: Plan): readonly Step[] {
  const steps: Step[] = resources.map(({ kind, name, exists }) => ({
    action: exists ? 'keep' : 'create',
    what: kind,
    name,
    detail: '',
  }))
  for (const { database, pending } of migrations) {
    if (pending.length === 0) continue
    steps.push({ action: 'migrate', what: 'database', name: database, detail: pending.join(' ') })
  }
  for (const { worker, exists, sent, kept, generated } of releases) {
    for (const name of generated)
      steps.push({ action: 'create', what: 'secret', name, detail: `of ${worker.name}` })
    const detail = [
      exists ? 'new version' : 'new Worker',
      ...(sent.length > 0 ? [`sends ${sent.join(' ')}`] : []),
      ...(kept.length > 0 ? [`keeps ${kept.join(' ')}`] : []),
    ].join('; ')
    steps.push({ action: 'deploy', what: 'worker', name: worker.name, detail })
  }
  return steps
}
