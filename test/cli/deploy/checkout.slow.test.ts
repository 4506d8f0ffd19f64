/** The Workers of this repository, and the template of a new project. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { environmentOf } from '../../../cli/deploy/environment.ts'
import { readProject } from '../../../cli/deploy/project.ts'
import { type Checkout, makeCheckout } from '../../dev/start/checkout.ts'
import { type CloudflareApi, startCloudflareApi } from '../../harness/cloudflare-api.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { describeInLong } from '../../harness/long.ts'
import { ROOT } from '../../harness/process.ts'

/**
 * In each run, `deploy.slow.test.ts` deploys a project with its Workers, and one without an audit trail with
 * `--env`. Of environments with all resources, each run checks only the names, below. The long run deploys to one.
 */
describeInLong('npm run deploy in a checkout', () => {
  let api: CloudflareApi
  let gateway: TestServer
  let checkout: Checkout

  beforeAll(async () => {
    api = await startCloudflareApi()
    gateway = await startHttpServer((_, response) => void response.end('{}'))
    checkout = await makeCheckout()
  })

  afterAll(async () => {
    await checkout?.close()
    await gateway?.close()
    await api?.close()
  })

  test('deploys the demo to an environment, and changes no file that git tracks', async () => {
    const files = ['wrangler.toml', 'workers/audit.toml', 'workers/origin.toml']
    const before = await Promise.all(files.map((file) => checkout.file(file)))
    const command = ['npm', 'run', '-s', 'deploy', '--', '--env', 'staging', '--yes', '--json']
    const { code, stdout, stderr } = await checkout.run(command as [string, ...string[]], {
      CLOUDFLARE_API_BASE_URL: api.url,
      CLOUDFLARE_API_TOKEN: api.token,
      CLOUDFLARE_ACCOUNT_ID: api.accountId,
      UPSTASH_REDIS_REST_URL: 'https://redis.example.com',
      UPSTASH_REDIS_REST_TOKEN: 'token',
      PUBLIC_URL: gateway.url,
    }).ended
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ environment: 'staging', ready: true })
    expect(await Promise.all(files.map((file) => checkout.file(file)))).toEqual(before)
    expect(api.queues()).toEqual([
      'portcullis-audit-staging',
      'portcullis-audit-staging-dead-letters',
    ])
    expect(api.tables('portcullis-audit-staging')).toContain('audit_events')
    const [version] = api.worker('portcullis-staging')?.versions ?? []
    expect(version?.bindings).toEqual(
      expect.arrayContaining([
        { name: 'REDIS_PREFIX', type: 'plain_text', text: 'pc-staging:' },
        expect.objectContaining({ name: 'ORIGIN', service: 'portcullis-origin-staging' }),
      ]),
    )
  })
})

test('the Workers of a project from the template are found, with names for each environment', () => {
  const project = readProject(join(ROOT, 'packages/create-portcullis/templates/gateway'))
  expect(project.workers.map(({ role, file }) => [role, file])).toEqual([
    ['audit', 'workers/audit.toml'],
    ['gateway', 'wrangler.toml'],
  ])
  const { queues, databases, workers } = environmentOf(project, 'staging')
  expect(queues).toEqual(['my-gateway-audit-staging', 'my-gateway-audit-staging-dead-letters'])
  expect(databases).toEqual([{ name: 'my-gateway-audit-staging', id: undefined }])
  expect(workers.map(({ name }) => name)).toEqual([
    'my-gateway-audit-staging',
    'my-gateway-staging',
  ])
})
