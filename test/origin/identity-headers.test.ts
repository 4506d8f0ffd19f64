/** Claims in headers of the policy's choice, on the server on Node with a second server as origin. */
import { once } from 'node:events'
import { type IncomingMessage, request as send } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Misconfigured } from '../../src/errors.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import { type Server, serve } from '../../src/runtimes/node/serve.ts'
import type { IdentityHeaders } from '../../src/validators/identity-headers.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint, type TestKey } from '../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'

const policy = (identityHeaders: IdentityHeaders) =>
  definePolicy({
    roles: { reader: ['orders:read'] },
    limits: {},
    identityHeaders,
    // The gateway's own header comes before the wish of the policy.
    keepHeaders: ['Remote-Name'],
    routes: [
      { method: 'GET', path: '/orders', permission: 'orders:read' },
      { method: 'GET', path: '/public', anonymous: true },
    ],
  })

const HEADERS = {
  'X-Auth-Email': 'email',
  'X-Auth-Groups': ['groups'],
  'Remote-User': 'preferred_username',
  'X-Team': ['https://example.com/team', 'name'],
  'X-Nested': '/a~1b/c',
  'X-Level': 'level',
  'X-Object': 'address',
} as const

describe('identityHeaders', () => {
  let redis: TestRedis
  let origin: TestServer
  let server: Server
  let key: TestKey
  const reached: IncomingMessage[] = []

  beforeAll(async () => {
    redis = await startTestRedis()
    key = await createKey('idp')
    origin = await startHttpServer((incoming, response) => {
      reached.push(incoming)
      response.end('[]')
    })
    server = await serve({
      policy: policy(HEADERS),
      port: 0,
      env: {
        ...redisVars(redis),
        PUBLIC_URL: 'https://gateway.test',
        ORIGIN_URL: origin.url,
        ISSUERS: JSON.stringify([
          { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
        ]),
      },
    })
  })
  afterAll(async () => {
    await server.close()
    await origin.close()
    await redis.close()
  })

  async function headersAtOrigin(path: string, headers: Readonly<Record<string, string>>) {
    const before = reached.length
    const request = send(`${server.url}${path}`, { headers, agent: false }).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    response.resume()
    expect(response.statusCode).toBe(200)
    expect(reached.length).toBe(before + 1)
    return reached.at(-1)?.headers ?? {}
  }

  const bearer = async (claims: object) => ({
    Authorization: `Bearer ${await mint(key, { claims: { ...claims } })}`,
  })

  test('the origin gets each claim, encoded as roles are, also from the cache of tokens', async () => {
    const headers = await bearer({
      email: 'alice@example.com',
      groups: ['admins', 'a, b', 'Gérants'],
      preferred_username: 'Alice Ä',
      'https://example.com/team': { name: 'blue' },
      'a/b': { c: true },
      level: 3,
      address: { city: 'Rome' },
    })
    for (let i = 0; i < 2; i++) {
      const got = await headersAtOrigin('/orders', headers)
      expect(got).toMatchObject({
        'x-auth-email': 'alice@example.com',
        'x-auth-groups': 'admins,a%2C%20b,G%C3%A9rants',
        'remote-user': 'Alice%20%C3%84',
        'x-team': 'blue',
        'x-nested': 'true',
        'x-level': '3',
      })
      expect(got).not.toHaveProperty('x-object')
    }
  })

  test.each([
    ['absent', {}],
    ['null', { email: null }],
    ['empty', { email: '' }],
    ['an empty list', { email: [] }],
    ['an object', { email: { value: 'x' } }],
    ['too long', { email: 'x'.repeat(4_097) }],
  ])(
    'a claim that is %s has no header, and the header of the client does not take its place',
    async (_, claims) => {
      const got = await headersAtOrigin('/orders', {
        ...(await bearer(claims)),
        'X-Auth-Email': 'admin@example.com',
        'x-auth-email': 'admin@example.com',
        X_Auth_Email: 'admin@example.com',
        'X.Auth.Email': 'admin@example.com',
        'Remote-User': 'admin',
        Remote_User: 'admin',
        'X-Team': 'red',
        X_Team: 'red',
        'Grpc-Metadata-X-Team': 'red',
        'Grpcgateway-X-Team': 'red',
        'HTTP-X-Team': 'red',
        'Grpc-Metadata-Http-X-Team': 'red',
      })
      const values = Object.entries(got).filter(
        ([name]) => !/^(?:host|x-request-id|trace)/.test(name),
      )
      expect(JSON.stringify(values)).not.toMatch(/admin|red/)
    },
  )

  test('an anonymous request has none of the headers', async () => {
    const got = await headersAtOrigin('/public', { 'X-Team': 'red', 'Remote-User': 'admin' })
    expect(got).not.toHaveProperty('x-team')
    expect(got).not.toHaveProperty('remote-user')
  })

  test('a value cannot end its line', async () => {
    const got = await headersAtOrigin(
      '/orders',
      await bearer({ email: 'a\r\nX-Auth-Subject: admin' }),
    )
    expect(got['x-auth-email']).toBe('a%0D%0AX-Auth-Subject:%20admin')
    expect(got['x-auth-subject']).not.toBe('admin')
  })
})

describe('a policy', () => {
  test.each<[string, IdentityHeaders]>([
    ['Content-Length', { 'Content-Length': 'email' }],
    ['content-type', { 'content-type': 'email' }],
    ['Host', { Host: 'email' }],
    ['Transfer-Encoding', { 'Transfer-Encoding': 'email' }],
    ['Connection', { Connection: 'email' }],
    ['Authorization', { Authorization: 'email' }],
    ['Cookie', { Cookie: 'email' }],
    ['X-Forwarded-For', { 'X-Forwarded-For': 'email' }],
    ['X-Auth-Subject', { 'X-Auth-Subject': 'email' }],
    ['X-Auth-Assertion', { 'x-auth-assertion': 'email' }],
    ['X-Request-Id', { 'X-Request-Id': 'email' }],
    ['letters, digits and hyphens', { X_Auth_Email: 'email' }],
    ['letters, digits and hyphens', { 'X Auth': 'email' }],
    ['letters, digits and hyphens', { '': 'email' }],
    ['duplicate header', { 'X-Email': 'email', 'x-email': 'mail' }],
    ['none of them empty', { 'X-Email': '' }],
  ])('names the mistake: %s', (text, identityHeaders) => {
    expect(() => policy(identityHeaders)).toThrow(Misconfigured)
    expect(() => policy(identityHeaders)).toThrow(new RegExp(text, 'i'))
  })

  test('may use the names of another proxy', () => {
    expect([...policy('oauth2-proxy').identityHeaders.keys()]).toEqual([
      'x-forwarded-user',
      'x-forwarded-email',
      'x-forwarded-preferred-username',
      'x-forwarded-groups',
    ])
    expect([...policy('pomerium').identityHeaders.keys()]).toContain('x-pomerium-claim-email')
    expect(() => policy('oauth-proxy' as never)).toThrow(Misconfigured)
  })
})
