import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { Hono } from 'hono'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { composeServices, definePolicy } from '../../../src/index.ts'
import {
  admit,
  audit,
  authenticate,
  callerOf,
  clientAddress,
  credentialHash,
  type GatewayVariables,
  problemHandler,
  requestId,
  sanitizeHeaders,
} from '../../../src/parts.ts'
import { redisVars, startTestRedis } from '../../harness/redis.ts'

const PUBLIC_URL = 'https://own.test'
const client = { id: randomUUID(), secret: 'a secret of one client, and of no other one' }

let redis: Awaited<ReturnType<typeof startTestRedis>>
let app: Hono<{ Variables: GatewayVariables }>
let handled = 0

beforeAll(async () => {
  redis = await startTestRedis()
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const jwk = { ...key.export({ format: 'jwk' }), kid: 'own', alg: 'ES256' }
  const digest = Buffer.from(await credentialHash(client.secret), 'base64url')
  const policy = definePolicy({
    roles: { reader: ['orders:read'] },
    limits: {},
    features: [authorizationServer()],
    routes: [{ method: 'GET', path: '/mine', permission: 'orders:read' }],
  })
  const services = composeServices(
    {
      PUBLIC_URL,
      ...redisVars(redis),
      ORIGIN_URL: 'https://unknown.test',
      SIGNING_KEYS: JSON.stringify({ keys: [jwk] }),
      CLIENTS: JSON.stringify([
        {
          id: client.id,
          grants: ['client_credentials'],
          roles: ['reader'],
          tokenFormat: 'opaque',
          secretSha256: digest.toString('base64url'),
        },
      ]),
    },
    policy,
    WORKERS,
  )
  const { verifier, references, proofs, admission, publicUrl } = services
  app = new Hono<{ Variables: GatewayVariables }>()
  app.onError(problemHandler({ publicUrl }))
  app.use(requestId(), audit({ sink: { record: () => undefined } }))
  app.use(sanitizeHeaders(), clientAddress())
  const endpoints = services.apps?.find(({ at }) => at === '/')
  if (endpoints?.at !== '/') throw new Error('no authorization server')
  app.route('/', endpoints.app)
  app.get('/mine', authenticate({ verifier, references, proofs }), admit({ admission }), (c) => {
    handled += 1
    return c.json({ subject: callerOf(c)?.subject })
  })
})

afterAll(() => redis.close())

const tokenRequest = (secret: string) =>
  app.request(`${PUBLIC_URL}/oauth/token`, {
    method: 'POST',
    headers: { Authorization: `Basic ${btoa(`${client.id}:${encodeURIComponent(secret)}`)}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })

test('a Worker built from public exports alone issues opaque tokens and accepts them', async () => {
  const issued = await tokenRequest(client.secret)
  expect(issued.status).toBe(200)
  const { access_token: token } = (await issued.json()) as { access_token: string }
  const headers = { Authorization: `Bearer ${token}` }
  const answer = await app.request(`${PUBLIC_URL}/mine`, { headers })
  expect(await answer.json()).toEqual({ subject: client.id })
  expect(handled).toBe(1)
})

test('a Worker built from public exports refuses a wrong secret and an unknown token', async () => {
  const before = handled
  expect((await tokenRequest('another secret of about the same length')).status).toBe(401)
  const headers = { Authorization: `Bearer ${randomUUID()}` }
  expect((await app.request(`${PUBLIC_URL}/mine`, { headers })).status).toBe(401)
  expect(handled).toBe(before)
})
