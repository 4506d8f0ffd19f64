/** A small project with a gateway, an audit Worker and an origin, and the command that deploys it. */
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CloudflareApi } from '../../harness/cloudflare-api.ts'
import { ROOT } from '../../harness/process.ts'
import { type Outcome, type RunningCommand, startCli } from '../command-line.ts'

const GATEWAY = `
name = "shop"
main = "gateway.js"
compatibility_date = "2026-11-17"

[[services]]
binding = "ORIGIN"
service = "shop-origin"

[[queues.producers]]
binding = "AUDIT_QUEUE"
queue = "shop-audit"

[[d1_databases]]
binding = "AUDIT_DB"
database_name = "shop-audit"
database_id = "00000000-0000-0000-0000-000000000000"
migrations_dir = "migrations"
`

const AUDIT = `
name = "shop-audit"
main = "audit.js"
compatibility_date = "2026-11-17"

[[d1_databases]]
binding = "AUDIT_DB"
database_name = "shop-audit"
database_id = "00000000-0000-0000-0000-000000000000"
migrations_dir = "migrations"

[[r2_buckets]]
binding = "AUDIT_EXPORT"
bucket_name = "shop-audit-export"

[[queues.consumers]]
queue = "shop-audit"
dead_letter_queue = "shop-audit-dead-letters"

[[queues.consumers]]
queue = "shop-audit-dead-letters"
`

const ORIGIN = `
name = "shop-origin"
main = "origin.js"
compatibility_date = "2026-11-17"
`

const FILES: Readonly<Record<string, string>> = {
  'package.json': '{ "name": "shop", "type": "module" }',
  'wrangler.toml': GATEWAY,
  'audit.toml': AUDIT,
  'origin.toml': ORIGIN,
  'gateway.js': "export default { fetch: () => new Response('gateway') }",
  'audit.js': 'export default { queue() {} }',
  'origin.js': "export default { fetch: () => new Response('origin') }",
  'migrations/0001_events.sql': 'CREATE TABLE events (id TEXT);',
  'migrations/0002_heads.sql': 'CREATE TABLE heads (id TEXT);',
}

/** A gateway without an audit trail and without an origin that is a Worker: one call of wrangler deploys it. */
export const GATEWAY_ONLY: Readonly<Record<string, string>> = {
  'package.json': '{ "name": "shop", "type": "module" }',
  'wrangler.toml': GATEWAY.slice(0, GATEWAY.indexOf('[[')),
  'gateway.js': "export default { fetch: () => new Response('gateway') }",
}

/** All but the origin: a deployment calls wrangler once less. */
export const WITHOUT_ORIGIN: Readonly<Record<string, string>> = {
  'package.json': '{ "name": "shop", "type": "module" }',
  'wrangler.toml': GATEWAY.replace(/\[\[services\]\]\n.*\n.*\n/, ''),
  'audit.toml': AUDIT,
  'gateway.js': "export default { fetch: () => new Response('gateway') }",
  'audit.js': 'export default { queue() {} }',
  'migrations/0001_events.sql': 'CREATE TABLE events (id TEXT);',
}

/** The secrets of a deployment. No output may contain them. */
export const REDIS_TOKEN = 'the-token-of-redis-8d1f'

export interface Project {
  readonly path: string
  write(file: string, text: string): Promise<void>
  read(file: string): Promise<string>
  /** Starts `portcullis deploy <args>` without a terminal. */
  start(args: readonly string[], env?: Readonly<Record<string, string>>): RunningCommand
  /** Runs the same command until it ends. */
  deploy(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Outcome>
  /** Folders with secrets that a deployment has left. */
  leftovers(): Promise<readonly string[]>
  close(): Promise<void>
}

/** Creates the project. `publicUrl` is the address at which the gateway will be found. */
export async function createProject(
  api: CloudflareApi,
  publicUrl: string,
  files = FILES,
): Promise<Project> {
  const path = await mkdtemp(join(tmpdir(), 'portcullis-shop-'))
  await mkdir(join(path, 'migrations'))
  await mkdir(join(path, '.portcullis'))
  await mkdir(`${path}.tmp`)
  for (const [file, text] of Object.entries(files)) await writeFile(join(path, file), text)
  await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'))
  const variables = {
    HOME: path,
    TMPDIR: `${path}.tmp`,
    CLOUDFLARE_API_BASE_URL: api.url,
    CLOUDFLARE_API_TOKEN: api.token,
    CLOUDFLARE_ACCOUNT_ID: api.accountId,
    UPSTASH_REDIS_REST_URL: 'https://redis.example.com',
    UPSTASH_REDIS_REST_TOKEN: REDIS_TOKEN,
    PUBLIC_URL: publicUrl,
  }
  const start: Project['start'] = (args, env = {}) =>
    startCli(['deploy', ...args], { cwd: path, env: { ...variables, ...env } })
  return {
    path,
    start,
    write: (file, text) => writeFile(join(path, file), text),
    read: (file) => readFile(join(path, file), 'utf8'),
    deploy: (args, env) => start(args, env).ended,
    leftovers: async () =>
      (await readdir(`${path}.tmp`)).filter((name) => name.startsWith('portcullis-deploy-')),
    close: async () => {
      for (const folder of [path, `${path}.tmp`]) await rm(folder, { recursive: true, force: true })
    },
  }
}
