/** The shop of docs/origins.md: its documented requests, through a gateway on Node. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { policyTester } from 'portcullis/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import policy from '../../../examples/shop/policy.ts'
import { type Server, serve } from '../../../src/runtimes/node/index.ts'
import { commandsOf } from '../../docs/documents.ts'
import { createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { freePort, ROOT, type Running, run } from '../../harness/process.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'

const ORIGINS = ['ORDERS', 'CATALOG', 'CATALOG_NEXT', 'CUSTOMERS']
const GATEWAY = 'http://127.0.0.1:8787'

let redis: TestRedis
let apis: Running
let gateway: Server
let token: string

beforeAll(async () => {
  redis = await startTestRedis()
  await redis.direct.flushall()
  const ports: string[] = []
  for (const _ of ORIGINS) ports.push(String(await freePort()))
  apis = await run([process.execPath, 'examples/shop/api.mjs', ...ports], {}, /listen on/)
  const key = await createKey('idp')
  const issuer = { issuer: ISSUER, audience: ISSUER, jwks: { keys: [key.publicJwk] } }
  const urls = ORIGINS.map((name, at) => [`ORIGIN_URL_${name}`, `http://127.0.0.1:${ports[at]}`])
  gateway = await serve({
    policy,
    port: 0,
    graceMs: 100,
    env: {
      REDIS_URL: redis.redisUrl,
      REDIS_TIMEOUT_MS: '5000',
      PUBLIC_URL: GATEWAY,
      ISSUERS: JSON.stringify([issuer]),
      ...Object.fromEntries(urls),
    },
  })
  token = await mint(key, { claims: { aud: ISSUER, sub: 'alice', roles: ['staff'] } })
})
afterAll(async () => {
  await gateway.close()
  await apis.stop()
  await redis.close()
})

test('each request of the guide has the status that the guide promises', async () => {
  const requests = commandsOf('docs/origins.md')
    .flatMap(({ text }) => text.split('\n'))
    .filter((line) => line.startsWith('curl'))
  expect(requests.length).toBeGreaterThan(4)
  for (const line of requests) {
    const [, promised] = /# (\d{3})$/.exec(line) ?? []
    const command = line.replaceAll(GATEWAY, gateway.url)
    const { stdout } = await promisify(execFile)('sh', ['-c', command], {
      cwd: ROOT,
      env: { ...process.env, TOKEN: token },
    })
    expect(`${line}: ${/^HTTP\/1\.1 (\d{3})/.exec(stdout)?.[1]}`).toBe(`${line}: ${promised}`)
  }
})

test('a policy test names the host, and sees the path and the headers that the origin gets', async () => {
  const tester = policyTester(policy)
  const as = { sub: 'alice', roles: ['staff'] }
  expect(
    await tester.request('GET /customers/7', { as, host: 'admin.shop.example' }),
  ).toMatchObject({
    allowed: true,
    origin: { path: '/customers/7', headers: { 'x-channel': 'admin' } },
  })
  expect(await tester.request('GET /v1/orders/7', { as, host: 'api.shop.example' })).toMatchObject({
    origin: { path: '/internal/orders/7' },
  })
  expect(await tester.request('GET /customers/7', { as })).toMatchObject({ status: 404 })
})
