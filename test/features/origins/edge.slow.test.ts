/** What an origin and a client learn about each other's addresses, on each runtime. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { exchange } from '../../origin/wire.ts'
import { type Running, startGateway } from './gateways.ts'
import { type RecordingOrigin, startOrigin } from './world.ts'

const PUBLIC_URL = 'https://gateway.test:8443'

describe.each(['workerd', 'Node'] as const)('on %s', (runtime) => {
  let redis: TestRedis
  let origin: RecordingOrigin
  let other: RecordingOrigin
  let gateway: Running
  /** Fields of the next responses of the origins. */
  let fields: Readonly<Record<string, string>> = {}

  beforeAll(async () => {
    redis = await startTestRedis()
    origin = await startOrigin('one', ({ headers }, response) => {
      response.writeHead(201, fields).end(headers['content-length'] ?? headers['transfer-encoding'])
    })
    other = await startOrigin('other', (_, response) => response.writeHead(201, fields).end('two'))
    gateway = await startGateway(
      runtime,
      { policy: 'edge-policy', entry: 'edge-worker' },
      {
        ...redisVars(redis),
        PUBLIC_URL,
        ORIGIN_URL: origin.url,
        ORIGIN_URL_BELOW: `${origin.url}/base`,
        ORIGIN_URL_OTHER: other.url,
        ...(runtime === 'Node' && {
          TRUSTED_PROXIES: '127.0.0.1',
          PROXY_TARGET_HEADERS: 'x-forwarded-port',
        }),
      },
    )
  })
  afterAll(async () => {
    await gateway?.stop()
    await Promise.all([origin?.close(), other?.close()])
    await redis?.close()
  })
  beforeEach(() => {
    fields = {}
    origin.received.length = 0
  })

  const send = (target: string, host: string, ...lines: readonly string[]) =>
    exchange(
      gateway.port,
      [`GET ${target} HTTP/1.1`, `Host: ${host}`, ...lines, '', ''].join('\r\n'),
    )

  test.each([
    ['gateway.test', 'https', 'gateway.test:8443', '8443'],
    ['gateway.test:8443', 'https', 'gateway.test:8443', '8443'],
    ['GATEWAY.test.', 'https', 'gateway.test:8443', '8443'],
    ['gateway.test:8080', 'http', 'gateway.test:8080', '8080'],
    ['other.test', 'http', 'other.test', '80'],
    ['other.test:81', 'http', 'other.test:81', '81'],
    ['gateway.test.more.test', 'http', 'gateway.test.more.test', '80'],
    ['[::1]:8080', 'http', '[::1]:8080', '8080'],
  ])(
    'an origin learns scheme, host and port of a request for %s, whatever the client states',
    async (host, scheme, authority, port) => {
      const forged = [
        'X-Forwarded-Proto: wss',
        'X-Forwarded-Host: evil.test',
        'X-Forwarded_Host: evil.test',
        'X-Forwarded-Scheme: https',
        'X-Url-Scheme: https',
        'X-Forwarded-Ssl: on',
        'Front-End-Https: on',
        'Forwarded: proto=https;host=evil.test',
      ]
      expect((await send('/plain/a', host, ...forged)).status).toBe(201)
      const headers = origin.received[0]?.headers ?? {}
      expect(headers).toMatchObject({
        'x-forwarded-proto': scheme,
        'x-forwarded-host': authority,
        'x-forwarded-port': port,
      })
      expect(JSON.stringify(headers)).not.toMatch(/evil\.test"|wss|front-end|ssl|"forwarded"/)
    },
  )

  test.each([
    ['a.tenant.test', 201],
    ['A.Tenant.TEST.:80', 201],
    ['.tenant.test', 404],
    ['..tenant.test', 404],
    ['a..tenant.test', 404],
    ['tenant.test', 404],
    ['a.b.tenant.test', 404],
    ['tenant.test.', 404],
  ])('a wildcard is one label of the host: %s is %i', async (host, status) => {
    const answer = await send('/tenant', host)
    // A runtime may refuse a host with an empty label itself.
    expect(answer.status === 400 && host.includes('..') ? 404 : answer.status).toBe(status)
    expect(origin.received).toHaveLength(status === 201 ? 1 : 0)
  })

  /** `O` is the URL of the origin, and `P` that of the other one. */
  const inPlaces = (text: string) => text.replaceAll('O', origin.url).replaceAll('P', other.url)

  test.each([
    ['O/plain/b?c=d#e', 'https://gateway.test:8443/plain/b?c=d#e'],
    ['O', 'https://gateway.test:8443/'],
    ['O?a=1', 'https://gateway.test:8443/?a=1'],
    ['O/anything', 'https://gateway.test:8443/anything'],
    ['O/caf%C3%A9', 'https://gateway.test:8443/caf%C3%A9'],
    ['/plain/b', '/plain/b'],
    ['b', 'b'],
    ['https://elsewhere.test/x', 'https://elsewhere.test/x'],
    ['https://gateway.test:8443/x', 'https://gateway.test:8443/x'],
    ['http://127.0.0.1/x', 'http://127.0.0.1/x'],
    ['http://127.0.0.1.evil.test/x', 'http://127.0.0.1.evil.test/x'],
    ['O/../x', 'O/../x'],
    ['O/base/orders/7', 'https://gateway.test:8443/base/orders/7'],
    ['P/other/a', 'P/other/a'],
  ])('a Location of %s becomes %s', async (location, expected) => {
    fields = { Location: inPlaces(location) }
    const { headers } = await send('/plain/a', 'gateway.test')
    expect(/^location: (.*)$/im.exec(headers)?.[1]).toBe(inPlaces(expected))
  })

  test.each([
    ['/v1/orders/1', 'O/base/orders/7', '/v1/orders/7'],
    ['/v1/orders/1', 'O/base/files/a/b', '/v1/files/a/b'],
    ['/v1/orders/1', 'O/base/internal/reports/7?x=1', '/reports/7?x=1'],
    ['/v1/orders/1', 'O/base/unknown', '/v1/unknown'],
    ['/reports', 'O/base/internal/reports/9', '/reports/9'],
    ['/reports', 'O/base/internal/reports', '/reports'],
    ['/reports', 'O/base/plain/x', '/plain/x'],
  ])(
    'after %s, a Location of %s is below the path of its route: %s',
    async (target, location, path) => {
      fields = { Location: inPlaces(location) }
      const { headers } = await send(target, 'gateway.test')
      expect(/^location: (.*)$/im.exec(headers)?.[1]).toBe(`https://gateway.test:8443${path}`)
    },
  )

  test('a Location has the host of the request, and one of another scheme becomes public too', async () => {
    fields = { Location: inPlaces('O/host/b').replace('http:', 'https:') }
    const { headers } = await send('/host/a', 'shop.test')
    expect(/^location: (.*)$/im.exec(headers)?.[1]).toBe('http://shop.test/host/b')
  })

  test('Content-Location and Refresh are like Location', async () => {
    for (const [refresh, expected] of [
      ['0; url=O/plain/b', '0; url=https://gateway.test:8443/plain/b'],
      ['1.5;URL="O/plain/b"', '1.5;URL="https://gateway.test:8443/plain/b"'],
      ["3, 'O/plain/b'", "3, 'https://gateway.test:8443/plain/b'"],
      ['5', '5'],
      ['0; url=/b', '0; url=/b'],
    ] as const) {
      fields = { Refresh: inPlaces(refresh), 'Content-Location': inPlaces('O/plain/c') }
      const { headers } = await send('/plain/a', 'gateway.test')
      expect(/^refresh: (.*)$/im.exec(headers)?.[1]).toBe(expected)
      expect(/^content-location: (.*)$/im.exec(headers)?.[1]).toBe(
        'https://gateway.test:8443/plain/c',
      )
    }
  })

  describe.each(['h2c', 'H2C', 'h2c, websocket', 'TLS/1.2', 'foo/1', 'websockets', 'HTTP/2.0'])(
    'Upgrade: %s',
    (protocol) => {
      const asking = [
        `Upgrade: ${protocol}`,
        'Connection: Upgrade, HTTP2-Settings',
        'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA',
      ]
      test.each([
        ['POST', ['Content-Length: 3'], 'x=1', '3'],
        ['POST', ['Transfer-Encoding: chunked'], '3\r\nx=1\r\n0\r\n\r\n', 'chunked'],
        ['POST', ['Content-Length: 0'], '', '0'],
        ['GET', [], '', ''],
      ])('is ignored for %s with %j', async (method, framing, body, seen) => {
        const text = [`${method} /plain/a HTTP/1.1`, 'Host: gateway.test', ...asking, ...framing]
        const reply = await exchange(gateway.port, [...text, '', body].join('\r\n'))
        expect([reply.status, reply.body, reply.aborted]).toEqual([201, seen, false])
        expect(origin.received).toHaveLength(1)
        expect(Object.keys(origin.received[0]?.headers ?? {})).not.toContain('upgrade')
      })
    },
  )

  test('a request may have as large a header as the policy says', async () => {
    const { status } = await send('/plain/a', 'gateway.test', `Cookie: ${'x'.repeat(60_000)}`)
    expect(status).toBe(201)
    expect(origin.received).toHaveLength(1)
    const larger = await send('/plain/a', 'gateway.test', `Cookie: ${'x'.repeat(66_000)}`)
    expect(larger.status).toBe(runtime === 'Node' ? 431 : 400)
    expect(origin.received).toHaveLength(1)
  })

  test.each([1, 10])(
    'a response of the origin may have a header of 120,000 bytes in %d fields',
    async (count) => {
      const value = 'y'.repeat(120_000 / count)
      fields = Object.fromEntries(
        Array.from({ length: count }, (_, at) => [`X-Large-${at}`, value]),
      )
      const { status, headers } = await send('/plain/a', 'gateway.test')
      expect(status).toBe(201)
      expect(headers.split(value)).toHaveLength(count + 1)
    },
  )

  test('a larger header of a response is 502, and opens no circuit breaker', async () => {
    fields = { 'X-Large': 'y'.repeat(132_000) }
    for (let count = 0; count < 7; count += 1) {
      const { status, body } = await send('/plain/a', 'gateway.test')
      expect([status, body]).toEqual([502, expect.stringContaining('header fields')])
    }
    expect(origin.received).toHaveLength(7)
    fields = {}
    expect((await send('/plain/a', 'gateway.test')).status).toBe(201)
  })
})
