/** Carries out a plan: creates resources, applies migrations, and deploys the Workers. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'smol-toml'
import { Failure } from '../failure.ts'
import type { Cloudflare } from './cloudflare.ts'
import {
  completed,
  deployArguments,
  type Environment,
  generatedFile,
  STATE_FOLDER,
} from './environment.ts'
import type { Plan, Release, Resource } from './plan.ts'
import {
  generateOperatorClient,
  generateSigningKeys,
  type OperatorClient,
  type Scratch,
} from './secrets.ts'
import type { Values } from './values.ts'
import type { RunWrangler } from './wrangler.ts'

export interface Outcome {
  /** The id of the new version of each Worker, by the name of the Worker. */
  readonly versions: Readonly<Record<string, string>>
  /** The created client, unless Cloudflare does not have it. Its secret exists nowhere else. */
  readonly operator: OperatorClient | undefined
  /** The step that failed, and what was done before it. */
  readonly failure: Failure | undefined
}

interface CarryOutOptions {
  readonly environment: Environment
  readonly values: Values
  readonly cloudflare: Cloudflare
  readonly wrangler: RunWrangler
  readonly scratch: Scratch
  /** Who deploys, for the console. Undefined: the policy has none. */
  readonly deployedBy: string | undefined
  /** Receives a line for each step that is done. */
  readonly report: (line: string) => void
}

const CREATE: Readonly<Record<Resource['kind'], readonly string[]>> = {
  queue: ['queues', 'create'],
  database: ['d1', 'create'],
  bucket: ['r2', 'bucket', 'create'],
}

/**
 * Carries out a plan until a step fails. The next run finds what was done, and continues with the
 * rest. Returns the failure, because the caller must also show a client that is stored already.
 */
export async function carryOut(plan: Plan, options: CarryOutOptions): Promise<Outcome> {
  const done: string[] = []
  function finish(line: string): void {
    done.push(line)
    options.report(line)
  }
  const isCreated = plan.releases.some(({ generated }) => generated.includes('CLIENTS'))
  const operator = isCreated ? generateOperatorClient() : undefined
  try {
    const versions = await runSteps(plan, options, operator, finish)
    return { versions, operator, failure: undefined }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const detail = `${error.message}. ${done.length === 0 ? 'Nothing was changed. ' : ''}Run the command again to continue.`
    const findings = done.map((message) => ({ in: '', path: 'done', message }))
    const failure = new Failure(error.exitCode, error.code, detail, { findings })
    const isStored = operator !== undefined && (await mayHaveClients(options))
    return { versions: {}, operator: isStored ? operator : undefined, failure }
  }
}

/** Wrangler uploads a Worker with its secrets before it sets routes and domains, which may fail. */
async function mayHaveClients({ environment, cloudflare }: CarryOutOptions): Promise<boolean> {
  try {
    const stored = await cloudflare.secrets(environment.workers.at(-1)?.name ?? '')
    return stored?.includes('CLIENTS') ?? false
  } catch {
    return true
  }
}

async function runSteps(
  plan: Plan,
  options: CarryOutOptions,
  operator: OperatorClient | undefined,
  finish: (line: string) => void,
): Promise<Outcome['versions']> {
  const { environment, cloudflare, wrangler } = options
  const ids = new Map(plan.databaseIds)
  for (const resource of plan.resources) {
    if (resource.exists) continue
    finish(await create(resource, options))
    if (resource.kind !== 'database') continue
    const id = await cloudflare.databaseId(resource.name)
    if (id !== undefined) ids.set(resource.name, id)
  }
  writeConfigurations(environment, ids, plan.publicUrl)
  for (const { database, pending, worker } of plan.migrations) {
    if (pending.length === 0) continue
    const config = ['-c', generatedFile(environment, worker)]
    await wrangler(['d1', 'migrations', 'apply', database, '--remote', ...config])
    finish(`applied ${pending.length} migrations to ${database}`)
  }
  const versions: Record<string, string> = {}
  for (const release of plan.releases) {
    const secrets = secretsOf(release, options.values, operator)
    const file = options.scratch.writeSecrets(release.worker.name, secrets)
    const withSecrets = Object.keys(secrets).length === 0 ? [] : ['--secrets-file', file]
    const by = release.worker === environment.workers.at(-1) ? options.deployedBy : undefined
    const { version_id: version } = await wrangler([
      ...deployArguments(environment, release.worker),
      ...withSecrets,
      ...(by === undefined ? [] : ['--var', `DEPLOYED_BY:${by}`]),
    ])
    versions[release.worker.name] = version ?? 'unknown'
    finish(`deployed ${release.worker.name}`)
  }
  return versions
}

/** Creates a resource. One that another run created in the meantime is kept. */
async function create(
  { kind, name }: Resource,
  { wrangler, cloudflare }: CarryOutOptions,
): Promise<string> {
  try {
    await wrangler([...CREATE[kind], name])
    return `created ${kind} ${name}`
  } catch (error) {
    const exists = {
      queue: () => cloudflare.hasQueue(name),
      database: async () => (await cloudflare.databaseId(name)) !== undefined,
      bucket: () => cloudflare.hasBucket(name),
    }
    if (!(await exists[kind]())) throw error
    return `kept ${kind} ${name}, which another run created`
  }
}

/** Returns the secrets that a release sends, with new values for those that it creates. */
function secretsOf(
  { sent, generated }: Release,
  values: Values,
  operator: OperatorClient | undefined,
): Values {
  const secrets: Record<string, string> = {}
  for (const name of sent) secrets[name] = values[name] ?? ''
  for (const name of generated) {
    secrets[name] = name === 'CLIENTS' ? (operator?.clients ?? '[]') : generateSigningKeys()
  }
  return secrets
}

/**
 * Writes the configurations of an environment. They contain no secret, and each run writes them
 * again, so that they can be deleted at any time. Git ignores the folder.
 */
export function writeConfigurations(
  environment: Environment,
  ids: ReadonlyMap<string, string>,
  publicUrl: string,
): void {
  mkdirSync(environment.folder, { recursive: true })
  writeFileSync(join(environment.folder, '..', '.gitignore'), '*\n')
  for (const worker of environment.workers) {
    const variables = worker.role === 'gateway' ? { PUBLIC_URL: publicUrl } : {}
    const header = `# Generated from ${worker.file} by \`portcullis deploy\`. Do not edit; see ${STATE_FOLDER} in docs/deploy.md.\n`
    const text = stringify(completed(worker.table, ids, variables))
    writeFileSync(generatedFile(environment, worker), `${header}${text}\n`)
  }
}
