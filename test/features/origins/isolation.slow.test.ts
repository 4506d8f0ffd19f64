/** Nothing that is for one origin reaches another, on each runtime, over raw connections. */
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { exchange } from '../../origin/wire.ts'
import { type Running, startGateway } from './gateways.ts'
import { PUBLIC_URL, type RecordingOrigin, startOrigin } from './world.ts'

let redis: TestRedis
let red: RecordingOrigin
let blue: RecordingOrigin
let vars: Readonly<Record<string, string>>
let token: string

beforeAll(async () => {
  redis = await startTestRedis()
  await redis.direct.flushall()
  red = await startOrigin('red', (_, response) => {
    response.writeHead(200, { 'X-Origin': 'red', 'Set-Cookie': 'red=secret; Path=/' }).end('red')
  })
  blue = await startOrigin('blue', (request, response) => {
    if (request.url === '/moved') response.writeHead(307, { Location: `${red.url}/same` }).end()
    else response.writeHead(200, { 'X-Origin': 'blue' }).end('blue')
  })
  const [idp, own] = await Promise.all([createKey('idp'), createKey('own')])
  const issuer = { issuer: ISSUER, audience: PUBLIC_URL, jwks: { keys: [idp.publicJwk] } }
  vars = {
    ...redisVars(redis),
    PUBLIC_URL,
    ISSUERS: JSON.stringify([issuer]),
    SIGNING_KEYS: JSON.stringify({ keys: [own.privateJwk] }),
    ORIGIN_URL_RED: red.url,
    ORIGIN_URL_BLUE: blue.url,
  }
  token = await mint(idp, { claims: { aud: PUBLIC_URL, sub: 'alice' } })
})
afterAll(async () => {
  await Promise.all([red.close(), blue.close()])
  await redis.close()
})

describe.each(['workerd', 'Node'] as const)('on %s [S57, S58, S59]', (runtime) => {
  let gateway: Running
  beforeAll(async () => {
    gateway = await startGateway(runtime, { policy: 'isolated-policy', entry: 'worker' }, vars)
  })
  afterAll(async () => {
    await gateway.stop()
  })
  beforeEach(() => {
    red.received.length = 0
    blue.received.length = 0
  })

  /** Sends a request line with these fields, byte for byte. */
  const send = (line: string, ...fields: readonly string[]) =>
    exchange(gateway.port, [`GET ${line} HTTP/1.1`, ...fields, '', ''].join('\r\n'))
  const authorized = (line: string, ...fields: readonly string[]) =>
    send(line, ...fields, `Authorization: Bearer ${token}`)
  const lines = () => [red, blue].map(({ received }) => received.map(({ line }) => line))

  test('each origin gets its own requests, host and assertions, and no credential', async () => {
    const cookie = 'Cookie: red=secret; session=1'
    await authorized('/same', 'Host: red.test', cookie)
    await authorized('/same', 'Host: shop.blue.test:8443', cookie)
    expect(lines()).toEqual([['GET /same'], ['GET /same']])
    for (const { url, received } of [red, blue]) {
      const headers = received[0]?.headers ?? {}
      expect(`http://${headers.host}`).toBe(url)
      expect(headers['x-auth-subject']).toBe('alice')
      expect(decodeJwt(String(headers['x-auth-assertion'])).aud).toBe(url)
      expect(headers).not.toHaveProperty('authorization')
      expect(headers).not.toHaveProperty('cookie')
      expect(JSON.stringify(headers)).not.toContain('secret')
    }
  })

  test('concurrent identical requests to two hosts share nothing', async () => {
    const answers = await Promise.all(
      ['red.test', 'a.blue.test', 'red.test', 'b.blue.test'].map((host) =>
        authorized('/same', `Host: ${host}`),
      ),
    )
    expect(answers.map(({ body }) => body)).toEqual(['red', 'blue', 'red', 'blue'])
  })

  test('cookies and tokens are forwarded to the origin of their route only', async () => {
    await authorized('/cookies', 'Host: red.test', 'Cookie: a=1')
    await authorized('/token', 'Host: red.test')
    await authorized('/same', 'Host: a.blue.test', 'Cookie: a=1')
    expect(red.received.map(({ headers }) => headers.cookie)).toEqual(['a=1', undefined])
    expect(red.received[1]?.headers.authorization).toBe(`Bearer ${token}`)
    expect(blue.received[0]?.headers.cookie).toBeUndefined()
    expect(blue.received[0]?.headers.authorization).toBeUndefined()
  })

  test('header rules of a route change this route only', async () => {
    const { headers } = await authorized('/tagged', 'Host: red.test', 'X-Tag: client')
    await authorized('/same', 'Host: a.blue.test', 'X-Tag: client')
    expect(headers).toMatch(/^x-frame-options: DENY$/im)
    expect(headers).not.toMatch(/^x-origin:/im)
    expect(red.received[0]?.headers['x-tag']).toBe('red')
    expect(blue.received[0]?.headers['x-tag']).toBe('client')
  })

  test('a redirect to another origin is returned, not followed', async () => {
    const { status, headers } = await send('/moved', 'Host: any.test')
    expect(status).toBe(307)
    expect(headers).toMatch(new RegExp(`^location: ${red.url}/same$`, 'im'))
    expect(lines()).toEqual([[], ['GET /moved']])
  })

  test.each([
    ['another host', '/same', ['Host: other.test']],
    ['two labels for one wildcard', '/same', ['Host: a.b.blue.test']],
    ['a forwarded host', '/same', ['Host: other.test', 'X-Forwarded-Host: red.test']],
    ['Forwarded', '/same', ['Host: other.test', 'Forwarded: host=red.test']],
    ['user information', '/same', ['Host: red.test@other.test']],
    ['a list', '/same', ['Host: red.test, other.test']],
    ['two fields', '/same', ['Host: red.test', 'Host: a.blue.test']],
    ['two fields, the other way around', '/same', ['Host: other.test', 'Host: red.test']],
    ['a path in the host', '/same', ['Host: red.test/same?']],
    ['the absolute form of another host', 'http://red.test/same', ['Host: other.test']],
    ['a dot segment in a parameter', '/v1/%2e%2e', ['Host: red.test']],
    ['a slash in a parameter', '/v1/..%2f..%2fsame', ['Host: red.test']],
    ['a plain dot segment', '/v1/../same', ['Host: red.test']],
  ])('with %s no origin is reached', async (_what, line, fields) => {
    const { status } = await authorized(line, ...fields)
    expect([400, 404]).toContain(status)
    expect(lines()).toEqual([[], []])
  })

  // workerd passes neither the authority of such a target on, nor the target itself.
  test.runIf(runtime === 'Node')(
    'a target with another authority than that of Host is refused',
    async () => {
      const { status } = await authorized('http://other.test/same', 'Host: red.test')
      expect(status).toBe(400)
      expect(lines()).toEqual([[], []])
    },
  )

  test('parameters keep their encoding in a rewritten path, and the query stays', async () => {
    await authorized('/v1/a%20b%3D?x=..%2f&y', 'Host: RED.test.')
    expect(lines()).toEqual([['GET /internal/a%20b%3D?x=..%2f&y'], []])
  })
})
