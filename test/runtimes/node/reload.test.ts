/** `Server.reload`: another policy for a server that runs. */
import { once } from 'node:events'
import { get, type ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { forwardAuth } from '../../../src/features/forward-auth/index.ts'
import { definePolicy, type Policy } from '../../../src/index.ts'
import { type Server, serve } from '../../../src/runtimes/node/index.ts'
import { startGateway, type TestGateway } from '../../harness/gateway.ts'
import { startHttpServer } from '../../harness/http-server.ts'
import { AUDIENCE, createKey, mint, REMOTE_ISSUER, type TestKey } from '../../harness/issuer.ts'
import { freePort } from '../../harness/process.ts'

const policyOf = (fields: Partial<Parameters<typeof definePolicy>[0]> = {}) =>
  definePolicy({
    roles: { reader: ['orders:read'] },
    limits: {},
    routes: [
      { method: 'GET', path: '/open', anonymous: true },
      { method: 'GET', path: '/orders', permission: 'orders:read' },
    ],
    ...fields,
  })

let parts: TestGateway
let issuer: Awaited<ReturnType<typeof startHttpServer>>
let key: TestKey
let server: Server
let fetches = 0
let listenerPort: number
let answer = (response: ServerResponse) => void response.end('[]')

beforeAll(async () => {
  parts = await startGateway({ redis: 'resp', origin: (_, response) => answer(response) })
  key = await createKey('remote')
  issuer = await startHttpServer((_, response) => {
    fetches += 1
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ keys: [key.publicJwk] }))
  })
  listenerPort = await freePort()
  const {
    UPSTASH_REDIS_REST_URL: _,
    UPSTASH_REDIS_REST_TOKEN: __,
    ...environment
  } = parts.environment as Record<string, string>
  server = await serve({
    policy: policyOf(),
    port: 0,
    graceMs: 1_000,
    env: {
      ...environment,
      REDIS_URL: parts.redis.redisUrl,
      ISSUERS: JSON.stringify([
        { issuer: REMOTE_ISSUER, audience: AUDIENCE, jwksUri: `${issuer.url}/jwks` },
      ]),
      TRUSTED_PROXIES: '127.0.0.1',
      FORWARD_AUTH_PORT: String(listenerPort),
    },
  })
})
afterAll(async () => {
  await server?.close()
  await issuer?.close()
  await parts?.close()
})

const statusOf = async (path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`${server.url}${path}`, { headers })
  await response.text()
  return response.status
}

const tokenOf = async (roles: readonly string[]) =>
  `Bearer ${await mint(key, { claims: { iss: REMOTE_ISSUER, aud: AUDIENCE, roles } })}`

test('a token that the old gateway cached has the rights of the new policy, while its issuer is down', async () => {
  const authorization = await tokenOf(['reader'])
  expect(await statusOf('/orders', { authorization })).toBe(200)
  const before = fetches
  await issuer.close()
  await server.reload(policyOf({ roles: { reader: ['orders:list'] } }))
  const reached = parts.requests.length
  expect(await statusOf('/orders', { authorization })).toBe(403)
  expect(parts.requests.length).toBe(reached)
  await server.reload(policyOf())
  expect(await statusOf('/orders', { authorization })).toBe(200)
  expect(fetches).toBe(before)
})

test('a policy with mistakes, and one that the environment does not fit, change nothing', async () => {
  const wrong = { routes: [] } as unknown as Policy
  await expect(server.reload(wrong)).rejects.toThrow('definePolicy')
  const { signIn } = await import('../../../src/features/sign-in/index.ts')
  await expect(server.reload(policyOf({ features: [signIn()] }))).rejects.toThrow(
    /The environment is not valid/,
  )
  expect(await statusOf('/open')).toBe(200)
})

test('requests that the old gateway admitted use places of maxConcurrentRequests of the new one', async () => {
  let release = () => {}
  const reached = Promise.withResolvers<void>()
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  answer = (response) => {
    reached.resolve()
    void held.then(() => response.end('[]'))
  }
  const policy = policyOf({ maxConcurrentRequests: 1 })
  await server.reload(policy)
  const first = statusOf('/open')
  await reached.promise
  await server.reload(policy)
  expect(await statusOf('/open')).toBe(503)
  release()
  expect(await first).toBe(200)
  answer = (response) => void response.end('[]')
  await server.reload(policyOf())
})

test('the size of headers that new connections may send follows the policy', async () => {
  const headers = { 'x-padding': 'x'.repeat(10_000) }
  const onNewConnection = async () => {
    const [response] = await once(get(`${server.url}/open`, { headers, agent: false }), 'response')
    response.resume()
    return response.statusCode
  }
  expect(await onNewConnection()).toBe(200)
  await server.reload(policyOf({ maxHeaderBytes: 8_192 }))
  expect(await onNewConnection()).toBe(431)
  await server.reload(policyOf())
  expect(await onNewConnection()).toBe(200)
})

describe('a listener of a feature', () => {
  const decide = async (uri: string) => {
    const headers = {
      'x-forwarded-method': 'GET',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'gateway.test',
      'x-forwarded-uri': uri,
      'x-forwarded-for': '192.0.2.1',
    }
    const response = await fetch(`http://127.0.0.1:${listenerPort}/-/decide`, { headers })
    await response.text()
    return response.status
  }

  test('opens, decides by the policy in force, and closes', async () => {
    const features = [forwardAuth()]
    expect(server.listeners).toEqual([])
    await expect(decide('/open')).rejects.toThrow('fetch failed')
    await server.reload(policyOf({ features }))
    expect(server.listeners).toMatchObject([{ url: `http://127.0.0.1:${listenerPort}` }])
    expect([await decide('/open'), await decide('/later')]).toEqual([200, 403])
    const routes = [{ method: 'GET', path: '/later', anonymous: true }] as const
    await server.reload(policyOf({ features, routes }))
    expect([await decide('/open'), await decide('/later')]).toEqual([403, 200])
    await server.reload(policyOf())
    expect(server.listeners).toEqual([])
    await expect.poll(() => decide('/open').catch(() => 'closed')).toBe('closed')
  })

  test('that cannot open keeps the old policy', async () => {
    const taken = createServer().listen(listenerPort, '127.0.0.1')
    await once(taken, 'listening')
    await expect(server.reload(policyOf({ features: [forwardAuth()] }))).rejects.toThrow(
      'EADDRINUSE',
    )
    taken.close()
    expect([await statusOf('/open'), server.listeners]).toEqual([200, []])
  })
})
