import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type CloudflareApi, startCloudflareApi } from '../../harness/cloudflare-api.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { describeInLong, testInLong, usualOrLong } from '../../harness/long.ts'
import {
  createProject,
  GATEWAY_ONLY,
  type Project,
  REDIS_TOKEN,
  WITHOUT_ORIGIN,
} from './project.ts'

/** Calls that create a resource which a second run must not create again. */
const CREATING = /^POST \/(queues|d1\/database|r2\/buckets)$|^POST \/queues\/\w+\/consumers$/

/** The part of a failure that the command prints with `--json`. */
interface Refusal {
  readonly code: string
  readonly errors?: readonly { readonly path: string; readonly message: string }[]
}

/** A deployment runs wrangler about ten times. */
const DEPLOYING = { timeout: 180_000 }

let gateway: TestServer
let status = 200
const asked: string[] = []

beforeAll(async () => {
  gateway = await startHttpServer((request, response) => {
    asked.push(request.url ?? '')
    response.writeHead(status, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ checks: { redis: status === 200 ? 'ok' : 'failed' } }))
  })
})

afterAll(() => gateway?.close())

/** Creates a project in an account of its own, until the end of the test. */
async function ownProject(files: Readonly<Record<string, string>>) {
  const api = await startCloudflareApi()
  onTestFinished(() => api.close())
  const project = await createProject(api, gateway.url, files)
  onTestFinished(() => project.close())
  return { api, project }
}

const secretsOf = (api: CloudflareApi, worker: string) =>
  Object.fromEntries(
    (api.worker(worker)?.versions.at(-1)?.bindings ?? [])
      .filter(({ type }) => type === 'secret_text')
      .map(({ name, text }) => [name, String(text)]),
  )

const variablesOf = (api: CloudflareApi, worker: string) =>
  Object.fromEntries(
    (api.worker(worker)?.versions.at(-1)?.bindings ?? [])
      .filter(({ type }) => type === 'plain_text')
      .map(({ name, text }) => [name, String(text)]),
  )

describe('a first deployment and the ones after it', DEPLOYING, () => {
  let api: CloudflareApi
  let project: Project
  let first: Readonly<Record<string, string>>

  beforeAll(async () => {
    api = await startCloudflareApi()
    project = await createProject(api, gateway.url)
  })

  afterAll(async () => {
    await project?.close()
    await api?.close()
  })

  test('a plan shows every step, and changes nothing in the account or in the folder', async () => {
    const before = readdirSync(project.path)
    const { code, stdout, stderr } = await project.deploy(['--plan'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(gateway.url) })
    for (const line of [
      /^create +queue +shop-audit +-$/m,
      /^create +queue +shop-audit-dead-letters +-$/m,
      /^create +database +shop-audit +-$/m,
      /^create +bucket +shop-audit-export +-$/m,
      /^migrate +database +shop-audit +0001_events.sql 0002_heads.sql$/m,
      /^deploy +worker +shop-origin +new Worker$/m,
      /^create +secret +SIGNING_KEYS +of shop$/m,
      /^deploy +worker +shop +new Worker; sends UPSTASH_REDIS_REST_URL UPSTASH_REDIS_REST_TOKEN$/m,
    ])
      expect(stdout).toMatch(line)
    expect(api.writes()).toEqual([])
    expect(api.calls().length).toBeGreaterThan(0)
    expect(readdirSync(project.path)).toEqual(before)
  })

  test('without a terminal it needs --yes, and changes nothing before', async () => {
    const { code, stderr } = await project.deploy([])
    expect(code).toBe(2)
    expect(stderr).toContain('--yes')
    expect(api.writes()).toEqual([])
  })

  test('creates the resources, applies the migrations, and deploys the gateway last', async () => {
    api.forget()
    const { code, stdout, stderr } = await project.deploy(['--yes', '--create-operator'])
    expect(code, stderr).toBe(0)
    expect(api.queues()).toEqual(['shop-audit', 'shop-audit-dead-letters'])
    expect(api.databases()).toEqual(['shop-audit'])
    expect(api.buckets()).toEqual(['shop-audit-export'])
    expect(api.tables('shop-audit')).toEqual(expect.arrayContaining(['events', 'heads']))
    const uploads = api.writes().filter((call) => call.startsWith('PUT /workers/scripts/'))
    expect(uploads.filter((call) => !call.endsWith('/schedules'))).toEqual([
      'PUT /workers/scripts/shop-origin',
      'PUT /workers/scripts/shop-audit',
      'PUT /workers/scripts/shop',
    ])
    expect(asked).toContain('/-/readyz')
    expect(stdout).toContain(gateway.url)
    expect(stdout).toContain('npx portcullis deploy rollback')
    first = secretsOf(api, 'shop')
  })

  test('the first version of the gateway has every secret, from the call that uploads it', () => {
    const [version] = api.worker('shop')?.versions ?? []
    const names = version?.bindings
      .filter(({ type }) => type === 'secret_text')
      .map(({ name }) => name)
    expect(names?.sort()).toEqual([
      'CLIENTS',
      'SIGNING_KEYS',
      'UPSTASH_REDIS_REST_TOKEN',
      'UPSTASH_REDIS_REST_URL',
    ])
    const carriers = api.calls().filter(({ body }) => body.includes(REDIS_TOKEN))
    expect(carriers.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'PUT /workers/scripts/shop',
    ])
    expect(variablesOf(api, 'shop')).toEqual({ PUBLIC_URL: gateway.url })
    expect(secretsOf(api, 'shop-audit')).toEqual({})
  })

  test('only the gateway has an address', () => {
    const addresses = api
      .calls()
      .filter(({ path }) => path.endsWith('/subdomain'))
      .filter(({ method }) => method === 'POST')
      .map(({ path, body }) => [
        path.split('/')[3],
        (JSON.parse(body) as { enabled: boolean }).enabled,
      ])
    expect(Object.fromEntries(addresses)).toEqual({
      'shop-origin': false,
      'shop-audit': false,
      shop: true,
    })
  })

  testInLong(
    'a second run creates no resource, secret or operator, and keeps a secret without a value',
    async () => {
      api.forget()
      const env = { UPSTASH_REDIS_REST_TOKEN: '', DEPLOYED_BY: 'release 42' }
      const { code, stdout, stderr } = await project.deploy(['--yes', '--create-operator'], env)
      expect(code, stderr).toBe(0)
      expect(api.writes().filter((call) => CREATING.test(call))).toEqual([])
      expect(api.calls().filter(({ body }) => body.includes('CREATE TABLE'))).toEqual([])
      expect(secretsOf(api, 'shop')).toEqual(first)
      expect(api.worker('shop')?.versions).toHaveLength(2)
      expect(stdout).not.toContain('pcs_')
      expect(stderr).toContain('CLIENTS is set already')
      // No secret: it is shown.
      expect(variablesOf(api, 'shop')).toEqual({
        PUBLIC_URL: gateway.url,
        DEPLOYED_BY: 'release 42',
      })
    },
  )

  test('no output and no file that remains contains a secret, except the new client’s own', async () => {
    const values = [REDIS_TOKEN, api.token, ...Object.values(first)]
    expect(await project.leftovers()).toEqual([])
    const generated = await project.read('.portcullis/production/wrangler.toml')
    for (const value of values) expect(generated).not.toContain(value)
    const { stdout, stderr } = await project.deploy(['--plan', '--json'])
    for (const value of values) expect(stdout + stderr).not.toContain(value)
    expect(await project.read('.portcullis/.gitignore')).toBe('*\n')
  })

  testInLong(
    'rollback returns to the version before, and only to that of the gateway',
    async () => {
      const [before, last] = api.worker('shop')?.versions ?? []
      expect(api.worker('shop')?.active).toBe(last?.id)
      api.forget()
      const { code, stdout, stderr } = await project.deploy(['rollback', '--yes'])
      expect(code, stderr).toBe(0)
      expect(stdout).toContain(before?.id)
      expect(api.worker('shop')?.active).toBe(before?.id)
      expect(api.writes()).toEqual(['POST /workers/scripts/shop/deployments'])
    },
  )

  testInLong('a version of another Worker can be named', async () => {
    const [audit] = api.worker('shop-audit')?.versions ?? []
    const args = ['rollback', '--worker', 'shop-audit', '--to', audit?.id ?? '', '--yes', '--json']
    const { code, stdout, stderr } = await project.deploy(args)
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ worker: 'shop-audit', version: audit?.id })
    expect(api.worker('shop-audit')?.active).toBe(audit?.id)
  })
})

describeInLong('environments', DEPLOYING, () => {
  let api: CloudflareApi
  let project: Project

  beforeAll(async () => {
    api = await startCloudflareApi()
    project = await createProject(api, gateway.url)
    const text = await project.read('wrangler.toml')
    const domain = '[[env.staging.routes]]\npattern = "staging.example.com"\ncustom_domain = true\n'
    const vars = '[vars]\nORIGIN_URL = "https://origin.example.com"\nREDIS_TIMEOUT_MS = "400"\n'
    const own = '[env.staging.vars]\nMETRICS_ACCESS = "public"\n'
    await project.write('wrangler.toml', text + vars + domain + own)
  })

  afterAll(async () => {
    await project?.close()
    await api?.close()
  })

  test('another environment uses its own names, prefix, domain and values', async () => {
    await project.deploy(['--plan'])
    const file = `PUBLIC_URL=${gateway.url}\nUPSTASH_REDIS_REST_TOKEN=staging-token\n`
    await project.write('staging.env', file)
    await project.write(
      'portcullis.config.js',
      "export default { features: [{ name: 'console' }] }",
    )
    const env = { PUBLIC_URL: '', UPSTASH_REDIS_REST_TOKEN: '' }
    const args = ['--env', 'staging', '--values', 'staging.env', '--yes']
    const { code, stderr } = await project.deploy(args, env)
    expect(code, stderr).toBe(0)
    expect(api.queues()).toEqual(['shop-audit-staging', 'shop-audit-staging-dead-letters'])
    expect(api.databases()).toEqual(['shop-audit-staging'])
    expect(api.buckets()).toEqual(['shop-audit-export-staging'])
    expect(variablesOf(api, 'shop-staging')).toEqual({
      PUBLIC_URL: gateway.url,
      REDIS_TIMEOUT_MS: '400',
      REDIS_PREFIX: 'pc-staging:',
      METRICS_ACCESS: 'public',
      // Only for a policy with a console.
      DEPLOYED_BY: expect.stringMatching(/^.+@.+$/),
    })
    expect(secretsOf(api, 'shop-staging').UPSTASH_REDIS_REST_TOKEN).toBe('staging-token')
    expect(stderr).toContain('created queue shop-audit-staging')
    const bindings = api.worker('shop-staging')?.versions[0]?.bindings ?? []
    expect(bindings.find(({ name }) => name === 'ORIGIN')?.service).toBe('shop-origin-staging')
    const generated = parse(await project.read('.portcullis/staging/wrangler.toml'))
    expect(generated.routes).toEqual([{ pattern: 'staging.example.com', custom_domain: true }])
  })

  test('the files of the project are unchanged, and production is another set of resources', async () => {
    expect(await project.read('wrangler.toml')).toContain('00000000-0000-0000-0000-000000000000')
    const { code, stdout } = await project.deploy(['--plan'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^create +queue +shop-audit +-$/m)
    expect(stdout).not.toContain('staging')
  })

  test('without PUBLIC_URL the gateway has its custom domain, else its address on workers.dev', async () => {
    const env = { PUBLIC_URL: '' }
    const staging = await project.deploy(['--plan', '--env', 'staging'], env)
    expect(staging.stderr).toContain('https://staging.example.com')
    const production = await project.deploy(['--plan'], env)
    expect(production.stderr).toContain('https://shop.acme.workers.dev')
  })
})

describe('a failure in the middle', DEPLOYING, () => {
  let api: CloudflareApi
  let project: Project

  beforeAll(async () => {
    api = await startCloudflareApi()
    project = await createProject(api, gateway.url)
  })

  afterAll(async () => {
    await project?.close()
    await api?.close()
  })

  /** The failures, in the order of the steps. Each run has the one at the second step. */
  const failures = [
    ['the first queue', /^POST \/queues /],
    ['the database', /^POST \/d1\/database /],
    ['the bucket', /^POST \/r2\/buckets /],
    ['a migration', /^POST \/d1\/database\/[^/]+\/query .*CREATE TABLE heads/],
    ['the origin', /^PUT \/workers\/scripts\/shop-origin /],
    ['the audit Worker', /^PUT \/workers\/scripts\/shop-audit /],
    ['a consumer', /^POST \/queues\/\w+\/consumers /],
    ['the gateway', /^PUT \/workers\/scripts\/shop /],
  ] satisfies readonly [string, RegExp][]

  test.each(usualOrLong(failures.slice(1, 2), failures))(
    'at %s is reported with what was done before, and leaves no file with secrets',
    async (_, call) => {
      api.forget()
      const before = api.queues().length
      api.failOnce(call)
      const { code, stdout, stderr } = await project.deploy(['--yes', '--json'])
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      const last = JSON.parse(stderr.trim().split('\n').at(-1) ?? '') as { error: Refusal }
      expect(last.error.code).toBe('wrangler_failed')
      const done = (last.error.errors ?? []).map(({ path, message }) => [path, message])
      const created = api.queues().slice(before)
      expect(done.slice(0, created.length)).toEqual(
        created.map((name) => ['done', `created queue ${name}`]),
      )
      expect(stderr).toMatch(/unknown error|only partially updated/)
      expect(stderr).toContain('Run the command again')
      expect(stderr).not.toContain(REDIS_TOKEN)
      expect(await project.leftovers()).toEqual([])
    },
  )

  test('at the only step, which sends the secrets, leaves no file and no output with them', async () => {
    const { api: other, project: shop } = await ownProject(GATEWAY_ONLY)
    other.failOnce(/^PUT \/workers\/scripts\/shop /)
    const env = { ORIGIN_URL: 'https://origin.example.com' }
    const { code, stdout, stderr } = await shop.deploy(['--yes', '--json'], env)
    const carriers = other.calls().filter(({ body }) => body.includes(REDIS_TOKEN))
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(carriers.map(({ path }) => path)).toEqual(['/workers/scripts/shop'])
    expect(stderr).toContain('wrangler_failed')
    expect(stderr).not.toContain(REDIS_TOKEN)
    expect(await shop.leftovers()).toEqual([])
  })

  testInLong(
    'is resumed: after all of them, the next run completes, and nothing exists twice',
    async () => {
      const { code, stdout, stderr } = await project.deploy(['--yes', '--json'])
      expect(code, stderr).toBe(0)
      expect(JSON.parse(stdout)).toMatchObject({ url: gateway.url, ready: true })
      expect(api.queues()).toEqual(['shop-audit', 'shop-audit-dead-letters'])
      expect(api.databases()).toEqual(['shop-audit'])
      expect(api.buckets()).toEqual(['shop-audit-export'])
      expect(api.worker('shop')?.versions).toHaveLength(1)
    },
  )

  testInLong('two runs at the same time create nothing twice', async () => {
    const { api: other, project: shop } = await ownProject(WITHOUT_ORIGIN)
    const env = { ORIGIN_URL: 'https://origin.example.com' }
    const outcomes = await Promise.all([shop.deploy(['--yes'], env), shop.deploy(['--yes'], env)])
    for (const { code, stderr } of outcomes) expect([0, 1], stderr).toContain(code)
    const { code, stderr } = await shop.deploy(['--yes'], env)
    expect(code, stderr).toBe(0)
    expect(other.queues()).toEqual(['shop-audit', 'shop-audit-dead-letters'])
    expect(other.databases()).toEqual(['shop-audit'])
    expect(other.buckets()).toEqual(['shop-audit-export'])
  })

  test('a gateway of another environment that does not become ready is reported with its failed checks', async () => {
    const { api: other, project: shop } = await ownProject(GATEWAY_ONLY)
    const env = { ORIGIN_URL: 'https://origin.example.com' }
    status = 503
    onTestFinished(() => {
      status = 200
    })
    const args = ['--env', 'staging', '--yes', '--wait', '1s']
    const { code, stderr } = await shop.deploy(args, env)
    const [version] = other.worker('shop-staging')?.versions ?? []
    const isOfProduction = other.worker('shop') !== undefined
    expect(code, stderr).toBe(3)
    expect(stderr).toContain('failed: redis')
    expect(stderr).toContain('npx portcullis deploy rollback --env staging')
    // Two environments that share a Redis must not share their keys.
    const prefix = version?.bindings.find(({ name }) => name === 'REDIS_PREFIX')
    expect([isOfProduction, prefix?.text]).toEqual([false, 'pc-staging:'])
  })
})

describe('a mistake of the operator is named before anything is created:', () => {
  let api: CloudflareApi
  let project: Project

  beforeAll(async () => {
    api = await startCloudflareApi()
    project = await createProject(api, gateway.url)
  })

  afterAll(async () => {
    expect(api.writes()).toEqual([])
    await project?.close()
    await api?.close()
  })

  test('all missing and wrong values at once', async () => {
    const env = { UPSTASH_REDIS_REST_TOKEN: '', REDIS_TIMEOUT_MS: '1', ISSUERS: 'no JSON' }
    const { code, stderr } = await project.deploy(['--yes'], env)
    expect(code).toBe(2)
    for (const name of ['UPSTASH_REDIS_REST_TOKEN: is missing', 'REDIS_TIMEOUT_MS: ', 'ISSUERS: '])
      expect(stderr).toContain(name)
  })

  test('missing credentials, together with missing values', async () => {
    const env = { CLOUDFLARE_API_TOKEN: '', CLOUDFLARE_ACCOUNT_ID: '', UPSTASH_REDIS_REST_URL: '' }
    const { code, stderr } = await project.deploy(['--yes'], env)
    expect(code).toBe(2)
    for (const name of Object.keys(env)) expect(stderr).toContain(`${name}: is missing`)
  })

  test.each([
    [
      'a wrong token',
      { CLOUDFLARE_API_TOKEN: 'wrong' },
      1,
      ['wrong_token', 'CLOUDFLARE_API_TOKEN'],
    ],
    [
      'a wrong account, or a token without a permission',
      { CLOUDFLARE_ACCOUNT_ID: 'fedcba9876543210fedcba9876543210' },
      1,
      ['wrong_account', 'Queues: Edit'],
    ],
    [
      'an API that does not answer',
      { CLOUDFLARE_API_BASE_URL: 'http://127.0.0.1:9/client/v4' },
      3,
      ['cloudflare_unreachable'],
    ],
  ])('%s', async (_, env, expected, texts) => {
    const { code, stderr } = await project.deploy(['--yes'], env)
    expect(code).toBe(expected)
    for (const text of texts) expect(stderr).toContain(text)
  })

  test('an invalid name of an environment', async () => {
    const { code, stderr } = await project.deploy(['--env', 'Two Words', '--plan'])
    expect(code).toBe(2)
    expect(stderr).toContain('--env')
  })

  test('a file that is not valid, with its line', async () => {
    const text = await project.read('audit.toml')
    await project.write('audit.toml', 'name = \n')
    const { code, stderr } = await project.deploy(['--plan'])
    await project.write('audit.toml', text)
    expect(code).toBe(2)
    expect(stderr).toContain('audit.toml:1:')
  })

  test('a folder without a gateway', async () => {
    const { code, stderr } = await project.deploy(['--plan'], { PWD: '/' })
    expect(code, stderr).toBe(0)
    const { runCli } = await import('../command-line.ts')
    const elsewhere = await runCli(['deploy', '--plan'], { cwd: join(project.path, 'migrations') })
    expect(elsewhere.code).toBe(2)
    expect(elsewhere.stderr).toContain('wrangler.toml')
  })

  test('a rollback without an earlier version', async () => {
    const { code, stderr } = await project.deploy(['rollback', '--yes'])
    expect(code).toBe(1)
    expect(stderr).toContain('no_earlier_version')
  })
})
