/** The deployment of projects that `npm create portcullis` writes. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CreatedProject, createProject } from '../create/project.ts'
import { makeTarballs, type Tarballs } from '../create/tarballs.ts'
import { type CloudflareApi, startCloudflareApi } from '../harness/cloudflare-api.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { type Outcome, runIn } from '../start/checkout.ts'

const ISSUER = ['--issuer', 'https://idp.example.com', '--audience', 'https://api.example.com']
const SECRETS = {
  UPSTASH_REDIS_REST_URL: 'https://redis.example.com',
  UPSTASH_REDIS_REST_TOKEN: 'the-token-of-redis',
}

let tarballs: Tarballs
let deployed: TestServer
beforeAll(async () => {
  tarballs = await makeTarballs()
  deployed = await startHttpServer((_, response) => void response.end('{}'))
})
afterAll(async () => {
  await deployed?.close()
  await tarballs?.close()
})

/** Runs `npm run deploy` in a project with these arguments. */
function deploy(
  { path }: CreatedProject,
  api: CloudflareApi,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const { url, token, accountId } = api
  return runIn(path, ['npm', 'run', '-s', 'deploy', '--', ...args], {
    HOME: path,
    WRANGLER_SEND_METRICS: 'false',
    CLOUDFLARE_API_BASE_URL: url,
    CLOUDFLARE_API_TOKEN: token,
    CLOUDFLARE_ACCOUNT_ID: accountId,
    ...env,
  }).ended
}

/** Returns the calls that change something. Ids of resources are replaced. */
const writesOf = (api: CloudflareApi) =>
  api.writes().map((call) => call.replaceAll(/[0-9a-f]{8}-?[0-9a-f-]{24,}/g, ':id'))

const secretsOf = (api: CloudflareApi, worker: string) =>
  (api.worker(worker)?.versions.at(-1)?.bindings ?? [])
    .filter(({ type }) => type === 'secret_text')
    .map(({ name }) => name)
    .sort()

describe('a gateway', () => {
  let api: CloudflareApi
  let project: CreatedProject
  beforeAll(async () => {
    api = await startCloudflareApi()
    const flags = ['--origin', 'https://origin.example.com', ...ISSUER]
    project = await createProject(tarballs, 'shop', flags)
  }, 600_000)
  afterAll(() => api?.close())

  test('is created by the first run, with its resources and secrets', async () => {
    const env = { ...SECRETS, PUBLIC_URL: deployed.url }
    const { code, stderr } = await deploy(project, api, ['--yes'], env)
    expect(code, stderr).toBe(0)
    expect(api.queues()).toEqual(['shop-audit', 'shop-audit-dead-letters'])
    expect(api.databases()).toEqual(['shop-audit'])
    expect(api.tables('shop-audit')).toContain('audit_events')
    expect(secretsOf(api, 'shop')).toEqual(expect.arrayContaining(Object.keys(SECRETS)))
  }, 180_000)

  test('a second run creates nothing: it uploads both Workers again', async () => {
    api.forget()
    const { code, stderr } = await deploy(project, api, ['--yes'], { PUBLIC_URL: deployed.url })
    expect(code, stderr).toBe(0)
    expect(writesOf(api)).toEqual([
      'POST /workers/scripts/shop-audit/versions',
      'POST /workers/scripts/shop-audit/deployments',
      'PATCH /workers/scripts/shop-audit/script-settings',
      'POST /workers/scripts/shop-audit/subdomain',
      'PUT /workers/scripts/shop-audit/schedules',
      'PUT /queues/:id/consumers/:id',
      'PUT /queues/:id/consumers/:id',
      'POST /workers/scripts/shop/versions',
      'POST /workers/scripts/shop/deployments',
      'PATCH /workers/scripts/shop/script-settings',
      'POST /workers/scripts/shop/subdomain',
    ])
  }, 180_000)

  test('returns to the version before', async () => {
    const [first] = api.worker('shop')?.versions ?? []
    api.forget()
    const { code, stderr } = await deploy(project, api, ['rollback', '--yes'])
    expect(code, stderr).toBe(0)
    expect(api.worker('shop')?.active).toBe(first?.id)
    expect(writesOf(api)).toEqual(['POST /workers/scripts/shop/deployments'])
  }, 180_000)
})

describe('an app', () => {
  let api: CloudflareApi
  let project: CreatedProject
  beforeAll(async () => {
    api = await startCloudflareApi()
    project = await createProject(tarballs, 'notes', ['--kind', 'middleware', ...ISSUER])
  }, 600_000)
  afterAll(() => api?.close())

  test('has its secrets from the first upload, with the command of its README', async () => {
    const [, args = ''] = /^npm run deploy -- (.+)$/m.exec(await project.file('README.md')) ?? []
    await mkdir(join(project.path, '.portcullis'), { recursive: true })
    const lines = Object.entries(SECRETS).map(([name, value]) => `${name}=${value}\n`)
    await writeFile(join(project.path, '.portcullis/production.env'), lines.join(''))
    const { code, stdout, stderr } = await deploy(project, api, args.split(' '))
    expect(code, stdout + stderr).toBe(0)
    expect(api.worker('notes')?.versions).toHaveLength(1)
    expect(secretsOf(api, 'notes')).toEqual(Object.keys(SECRETS).sort())
    expect(stdout + stderr).not.toContain(SECRETS.UPSTASH_REDIS_REST_TOKEN)
  }, 180_000)

  test('keeps its secrets in a later run', async () => {
    const { code, stdout, stderr } = await deploy(project, api, [])
    expect(code, stdout + stderr).toBe(0)
    expect(api.worker('notes')?.versions).toHaveLength(2)
    expect(secretsOf(api, 'notes')).toEqual(Object.keys(SECRETS).sort())
  }, 180_000)
})
