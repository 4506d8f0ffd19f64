import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { authorizationCode } from '../../../src/features/authorization-code/index.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { openapi } from '../../../src/features/openapi/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { freePort, type Running, run } from '../../harness/process.ts'
import { startTestRedis } from '../../harness/redis.ts'
import { startProvider } from '../sign-in/provider.ts'
import { installSchemathesis, runSchemathesis } from './schemathesis.ts'

const PATIENCE_MS = 240_000

const missing = installSchemathesis()
if (missing !== undefined)
  console.info(`schemathesis: not run, it could not be installed (${missing})`)

describe.skipIf(missing !== undefined)('requests generated from the OpenAPI document', () => {
  let gateway: Running
  let url: string
  let token: string
  beforeAll(async () => {
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    const key = await createKey('idp')
    const issuer = { issuer: ISSUER, audience: url, jwks: { keys: [key.publicJwk] } }
    const env = { PORT: String(port), ISSUERS: JSON.stringify([issuer]) }
    gateway = await run([process.execPath, 'dev/start.ts'], env, 'Portcullis is ready on')
    token = await mint(key, { claims: { sub: randomUUID(), aud: url, roles: ['operator'] } })
  })
  afterAll(() => gateway?.stop())

  test(
    'no operator or public call answers with 5xx or with an undocumented response [S63]',
    async () => {
      const { code, output } = await runSchemathesis(url, [
        ...['--header', `Authorization: Bearer ${token}`],
        ...['--include-path-regex', '^/(-|.well-known)/'],
      ])
      expect(code, output).toBe(0)
      expect(output).toMatch(/[1-9]\d{2,} generated/)
    },
    PATIENCE_MS,
  )

  test(
    'the authorization server with its flow for public clients does not either [S63]',
    async () => {
      const server = await startFlow()
      const headers = {
        Authorization: `Bearer ${server.token}`,
        'Content-Type': 'application/json',
      }
      const created = await fetch(`${server.url}/-/admin/clients`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ name: 'fuzzer', grants: ['client_credentials', 'refresh_token'] }),
      })
      const { clientId, clientSecret } = (await created.json()) as Record<string, string>
      const results = await Promise.all([
        // The list of sessions is also a page: it leads browsers to the sign-in, and has a form.
        runSchemathesis(server.url, [
          ...['--auth', `${clientId}:${clientSecret}`],
          ...['--include-path-regex', '^/oauth/(?!sessions)'],
        ]),
        runSchemathesis(server.url, [
          ...['--header', `Authorization: Bearer ${server.token}`],
          ...['--include-path-regex', '^/-/admin/consents'],
        ]),
      ])
      await server.close()
      for (const { code, output } of results) expect(code, output).toBe(0)
      expect(results[0]?.output).toMatch(/[1-9]\d{2,} generated/)
    },
    PATIENCE_MS,
  )
})

/** Starts a gateway whose policy has all endpoints below `/oauth`. */
async function startFlow() {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const provider = await startProvider(url)
  const [key, signing] = [await createKey('idp'), await createKey('gateway')]
  const server = await serve({
    policy: definePolicy({
      roles: { operator: ['portcullis:*'] },
      limits: {},
      abuse: { bans: false, authenticationFailures: false },
      features: [
        openapi(),
        operators(),
        authorizationServer(),
        signIn({ requestsPerMinute: 10_000 }),
        authorizationCode({ registration: { perAddress: 1_000 } }),
      ],
      routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
    }),
    port,
    graceMs: 100,
    env: {
      REDIS_URL: redis.redisUrl,
      REDIS_TIMEOUT_MS: '5000',
      // Otherwise events are written to the output.
      AUDIT_STREAM: 'redis',
      PUBLIC_URL: url,
      ORIGIN_URL: url,
      SIGNING_KEYS: JSON.stringify({ keys: [signing.privateJwk] }),
      ISSUERS: JSON.stringify([
        { issuer: provider.issuer, audience: url },
        { issuer: ISSUER, audience: url, jwks: { keys: [key.publicJwk] } },
      ]),
      ISSUER_CLIENTS: JSON.stringify([
        {
          issuer: provider.issuer,
          id: provider.client.id,
          secret: provider.client.secret,
          signIn: { name: 'Example', scope: 'openid profile' },
        },
      ]),
    },
  })
  return {
    url,
    token: await mint(key, { claims: { sub: randomUUID(), aud: url, roles: ['operator'] } }),
    async close() {
      await server.close()
      await provider.close()
      await redis.close()
    },
  }
}
