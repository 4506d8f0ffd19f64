/** Retries, deadlines, breakers and CORS of origins and hosts over real sockets, on each runtime. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../../dev/fault-proxy/proxy.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { exchange } from '../../origin/wire.ts'
import { type Running, startGateway } from './gateways.ts'
import { ADMIN, SHOP } from './wired-policy.ts'
import { PUBLIC_URL, type RecordingOrigin, startOrigin } from './world.ts'

/** Failures in a row that open a breaker. */
const FAILURES = 5

describe.each(['workerd', 'Node'] as const)('on %s [R23, S60]', (runtime) => {
  let redis: TestRedis
  let fragile: RecordingOrigin
  let steady: RecordingOrigin
  let proxy: FaultProxy
  let gateway: Running
  /** How many of the next requests the fragile origin resets. */
  let resets = 0

  beforeAll(async () => {
    redis = await startTestRedis()
    // Without kept connections, no runtime repeats a request by itself.
    fragile = await startOrigin('fragile', (request, response) => {
      if (request.url?.endsWith('/silent')) return
      if (resets-- > 0) request.socket.resetAndDestroy()
      else response.writeHead(200, { Connection: 'close' }).end('fragile')
    })
    steady = await startOrigin('steady', (_, response) => {
      response.writeHead(200, { Connection: 'close' }).end('steady')
    })
    proxy = await startFaultProxy({
      target: { host: '127.0.0.1', port: Number(new URL(steady.url).port) },
    })
    gateway = await startGateway(
      runtime,
      { policy: 'wired-policy', entry: 'wired-worker' },
      {
        ...redisVars(redis),
        PUBLIC_URL,
        ORIGIN_URL_FRAGILE: fragile.url,
        ORIGIN_URL_STEADY: steady.url,
        ORIGIN_URL_PROXY: proxy.url,
      },
    )
  })
  afterAll(async () => {
    await gateway?.stop()
    await Promise.all([fragile?.close(), steady?.close(), proxy?.close()])
    await redis?.close()
  })
  beforeEach(() => {
    resets = 0
    fragile.received.length = 0
    steady.received.length = 0
  })

  const send = (line: string, ...fields: readonly string[]) =>
    exchange(
      gateway.port,
      [
        `${line} HTTP/1.1`,
        ...(fields.some((field) => field.startsWith('Host:')) ? [] : ['Host: gateway.test']),
        ...fields,
        '',
        '',
      ].join('\r\n'),
    )
  const lines = () => fragile.received.map(({ line }) => line)

  test.each([
    ['GET', 1],
    ['GET', 2],
    ['PUT', 1],
  ])(
    'a %s whose connection is reset %i times is sent again, and answered',
    async (method, count) => {
      resets = count
      const line = `${method} /repeated/${method.toLowerCase()}`
      const fields = method === 'PUT' ? ['Content-Length: 0'] : []
      expect(await send(line, ...fields)).toMatchObject({ status: 200, body: 'fragile' })
      expect(lines()).toEqual(Array(count + 1).fill(line))
    },
  )

  test.each([
    ['a POST', 'POST /repeated/post', ['Content-Length: 0'], ''],
    ['a PUT with a body', 'PUT /repeated/put', ['Content-Length: 2'], 'ab'],
    ['a GET for an origin without retries', 'GET /once', [], ''],
  ] as const)('%s is sent once', async (_, line, fields, body) => {
    resets = 1
    const head = [`${line} HTTP/1.1`, 'Host: gateway.test', ...fields, '', body]
    expect((await exchange(gateway.port, head.join('\r\n'))).status).toBe(502)
    expect(lines()).toEqual([line])
  })

  test('more resets than retries are 502, without a further attempt', async () => {
    resets = 9
    expect((await send('GET /repeated/get')).status).toBe(502)
    expect(lines()).toHaveLength(3)
  })

  test('a silent origin is 504 after its deadline, and is not called again', async () => {
    expect((await send('GET /repeated/silent')).status).toBe(504)
    expect(lines()).toEqual(['GET /repeated/silent'])
  })

  test('a breaker of the whole origin opens for all its routes, for no other origin, and closes', async () => {
    await proxy.set({ kind: 'refuse' })
    // Each request fails twice: it is sent again.
    for (let failed = 0; failed < FAILURES; failed += 2)
      expect((await send('GET /whole/a')).status).toBe(502)
    const refused = await send('GET /whole/b')
    expect(refused.status).toBe(502)
    const [, seconds] = /^retry-after: (\d+)/im.exec(refused.headers) ?? []
    expect(Number(seconds)).toBeGreaterThan(0)
    expect((await send('GET /steady')).status).toBe(200)
    await proxy.set({ kind: 'none' })
    expect(steady.received.map(({ line }) => line)).toEqual(['GET /steady'])
    await sleep(Number(seconds) * 1_000)
    expect(await send('GET /whole/b')).toMatchObject({ status: 200, body: 'steady' })
    expect(await send('GET /whole/a')).toMatchObject({ status: 200, body: 'steady' })
  })

  describe('one path on several hosts', () => {
    const allowed = ({ headers }: { readonly headers: string }) => ({
      origin: /^access-control-allow-origin: (\S+)/im.exec(headers)?.[1],
      credentials: /^access-control-allow-credentials: (\S+)/im.exec(headers)?.[1],
    })
    const NONE = { origin: undefined, credentials: undefined }
    const rules = [
      ['shop.test', SHOP, { origin: SHOP, credentials: 'true' }],
      ['SHOP.test:8443', SHOP, { origin: SHOP, credentials: 'true' }],
      ['shop.test', ADMIN, NONE],
      ['back.test', ADMIN, { origin: ADMIN, credentials: undefined }],
      ['back.test', SHOP, NONE],
      ['other.example', SHOP, NONE],
      ['other.example', ADMIN, NONE],
    ] as const

    test.each(rules)(
      'on %s, a page of %s gets the rules of this host',
      async (host, page, rule) => {
        const reply = await send(
          'PUT /data',
          `Host: ${host}`,
          `Origin: ${page}`,
          'Content-Length: 0',
        )
        expect(reply.status).toBe(200)
        expect(allowed(reply)).toEqual(rule)
        // A host without rules has the same response for every page.
        expect(/^vary: .*Origin/im.test(reply.headers)).toBe(host !== 'other.example')
      },
    )

    test.each(rules)('on %s, a preflight request of %s does too', async (host, page, rule) => {
      const reply = await send(
        'OPTIONS /data',
        `Host: ${host}`,
        `Origin: ${page}`,
        'Access-Control-Request-Method: PUT',
      )
      expect(allowed(reply)).toEqual(rule)
      const methods = /^access-control-allow-methods: (.*)\r?$/im.exec(reply.headers)?.[1]
      expect(methods?.includes('PUT') ?? false).toBe(rule !== NONE)
      expect(steady.received).toEqual([])
    })
  })
})
