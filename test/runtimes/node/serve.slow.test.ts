import { once } from 'node:events'
import { request as send } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { dial } from '../../origin/wire.ts'
import { type NodeGateway, startNodeGateway } from './gateway.ts'

const ENCODED = gzipSync('[]')

/** Scripts that Redis has run for requests: one for each round trip. */
async function callsOf({ redis }: NodeGateway, over: 'resp' | 'rest'): Promise<number> {
  if (over === 'rest') return redis.calls()
  const statistics = await redis.direct.info('commandstats')
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(statistics)?.[1] ?? 0)
}

describe.each(['resp', 'rest'] as const)('a gateway on Node, with Redis over %s', (over) => {
  let gateway: NodeGateway
  beforeAll(async () => {
    gateway = await startNodeGateway(
      {},
      (request, response) => {
        if (request.headers['x-answer'] !== 'encoded') return void response.end('[]')
        response.setHeader('content-encoding', 'gzip')
        response.setHeader('set-cookie', ['a=1', 'b=2'])
        response.setHeader('x-name', 'J\u00f6rg')
        response.end(ENCODED)
      },
      over,
    )
  })
  afterAll(() => gateway.close())

  test('forwards an admitted request with the identity of its caller and nothing else', async () => {
    const token = await gateway.token({ claims: { sub: 'alice' } })
    const headers = { authorization: `Bearer ${token}`, 'x-auth-subject': 'mallory' }
    await fetch(`${gateway.url}/orders`, { headers })
    const calls = await callsOf(gateway, over)
    const response = await fetch(`${gateway.url}/orders?page=2`, {
      headers,
    })
    expect([response.status, await response.text()]).toEqual([200, '[]'])
    expect((await callsOf(gateway, over)) - calls).toBe(1)
    const received = gateway.reached.at(-1)
    expect([received?.method, received?.url]).toEqual(['GET', '/orders?page=2'])
    expect(received?.headers).toMatchObject({
      'x-auth-subject': 'alice',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
    })
    expect(received?.headers).not.toHaveProperty('authorization')
  })

  test.each([
    ['no token', undefined, 401],
    ['a token of another audience', { claims: { aud: 'https://other.test' } }, 401],
    ['a role without the permission', { claims: { roles: ['guest'] } }, 403],
  ])('refuses %s before the origin', async (_, options, status) => {
    const before = gateway.reached.length
    const headers: Record<string, string> =
      options === undefined ? {} : { authorization: `Bearer ${await gateway.token(options)}` }
    const response = await fetch(`${gateway.url}/orders`, { headers })
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(gateway.reached.length).toBe(before)
  })

  test('takes the address of the connection, whatever headers say', async () => {
    const statuses: number[] = []
    for (const hop of ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'])
      statuses.push(
        (
          await fetch(`${gateway.url}/counted`, {
            headers: { 'cf-connecting-ip': hop, 'x-forwarded-for': hop, forwarded: `for=${hop}` },
          })
        ).status,
      )
    expect(statuses).toEqual([200, 200, 200, 429])
  })

  test('passes on an encoded body, several cookies and bytes of a header unchanged', async () => {
    const token = await gateway.token()
    const headers = { authorization: `Bearer ${token}`, 'x-answer': 'encoded' }
    const [response] = await once(send(`${gateway.url}/orders`, { headers }).end(), 'response')
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk)
    expect(Buffer.concat(chunks)).toEqual(ENCODED)
    expect(response.headers).toMatchObject({
      'content-encoding': 'gzip',
      'set-cookie': ['a=1', 'b=2'],
      'x-name': 'J\u00f6rg',
    })
    expect(gateway.reached.at(-1)?.headers).not.toHaveProperty('accept-encoding')
  })
})

describe('behind trusted proxies', () => {
  let gateway: NodeGateway
  beforeAll(async () => {
    gateway = await startNodeGateway({ TRUSTED_PROXIES: '127.0.0.0/8, 2001:db8::/32' })
  })
  afterAll(() => gateway.close())

  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['198.51.100.1, 192.0.2.7', '192.0.2.7'],
    ['198.51.100.1, 192.0.2.7, 127.0.0.9', '192.0.2.7'],
    ['192.0.2.7:4711, [2001:db8::9]:443', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['127.0.0.2', '127.0.0.2'],
    ['192.0.2.7, unknown', undefined],
    ['192.0.2.7, 010.1.1.1', undefined],
    [`${'1,'.repeat(40)}192.0.2.7`, '192.0.2.7'],
    [`${'127.0.0.2,'.repeat(40)}192.0.2.7, 127.0.0.9`, '192.0.2.7'],
    [Array(40).fill('127.0.0.2').join(), '127.0.0.2'],
    [' , ,192.0.2.7, ', '192.0.2.7'],
  ])('X-Forwarded-For: %s is the address %s', async (list, address) => {
    const token = await gateway.token()
    const headers = {
      authorization: `Bearer ${token}`,
      'x-forwarded-for': list,
      forwarded: 'for=198.51.100.9',
    }
    expect((await fetch(`${gateway.url}/orders`, { headers })).status).toBe(200)
    expect(gateway.reached.at(-1)?.headers['x-forwarded-for']).toBe(address)
  })

  test('a limit counts a client, whatever it writes on the left of its address', async () => {
    const before = gateway.reached.length
    const statuses: number[] = []
    for (const left of ['', '1,'.repeat(32), '",', '1,'.repeat(10_000), 'unknown,', '10.0.0.1,']) {
      const headers = { 'x-forwarded-for': `${left}192.0.2.99` }
      statuses.push((await fetch(`${gateway.url}/counted`, { headers })).status)
    }
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429])
    expect(gateway.reached.length - before).toBe(3)
  })
})

describe('behind trusted proxies that report the request', () => {
  let gateway: NodeGateway
  beforeAll(async () => {
    gateway = await startNodeGateway({
      TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8',
      PROXY_TARGET_HEADERS: 'x-forwarded-proto, X-Forwarded-Host,x-forwarded-port',
    })
  })
  afterAll(() => gateway.close())

  /** Returns scheme, host and port that the origin gets, for a request from a local address. */
  async function reported(from: string, headers: Readonly<Record<string, string>>) {
    const authorization = `Bearer ${await gateway.token()}`
    const options = { localAddress: from, headers: { host: 'a.test', authorization, ...headers } }
    const [response] = await once(send(`${gateway.url}/orders`, options).end(), 'response')
    response.resume()
    expect(response.statusCode).toBe(200)
    const received = gateway.reached.at(-1)?.headers
    return ['proto', 'host', 'port'].map((name) => received?.[`x-forwarded-${name}`])
  }

  test.each<[Readonly<Record<string, string>>, readonly string[]]>([
    [{ 'x-forwarded-proto': 'https' }, ['https', 'a.test', '443']],
    [{ 'x-forwarded-proto': 'HTTPS' }, ['https', 'a.test', '443']],
    [{ 'x-forwarded-proto': 'wss' }, ['https', 'a.test', '443']],
    [
      { 'x-forwarded-proto': 'https', 'x-forwarded-port': '8443' },
      ['https', 'a.test:8443', '8443'],
    ],
    [{ 'x-forwarded-host': 'b.test:81' }, ['http', 'b.test:81', '81']],
    [{ 'x-forwarded-host': 'b.test:81', 'x-forwarded-port': '80' }, ['http', 'b.test', '80']],
    [{ 'x-forwarded-host': 'gateway.test' }, ['https', 'gateway.test', '443']],
    [{ host: 'gateway.test', 'x-forwarded-proto': 'http' }, ['http', 'gateway.test', '80']],
    // Each proxy has appended its value: that of the proxy next to the client counts.
    [{ 'x-forwarded-proto': 'https, http' }, ['http', 'a.test', '80']],
    [
      { 'x-forwarded-for': '192.0.2.1, 10.0.0.1', 'x-forwarded-proto': 'https, http' },
      ['https', 'a.test', '443'],
    ],
    [
      { 'x-forwarded-for': '1,192.0.2.1, 10.0.0.1', 'x-forwarded-proto': 'https, http, http' },
      ['http', 'a.test', '80'],
    ],
    [
      { 'x-forwarded-for': '192.0.2.1,10.0.0.1,10.0.0.2', 'x-forwarded-proto': 'https, http' },
      ['http', 'a.test', '80'],
    ],
    // Unreadable values are not used.
    [{ 'x-forwarded-proto': 'ftp' }, ['http', 'a.test', '80']],
    [{ 'x-forwarded-proto': '__proto__' }, ['http', 'a.test', '80']],
    [{ 'x-forwarded-host': 'b.test/x' }, ['http', 'a.test', '80']],
    [{ 'x-forwarded-host': 'b.test:99999' }, ['http', 'a.test', '80']],
    [{ 'x-forwarded-host': 'u@b.test' }, ['http', 'a.test', '80']],
    [{ 'x-forwarded-port': '0' }, ['http', 'a.test', '80']],
    [{ 'x-forwarded-port': '65536' }, ['http', 'a.test', '80']],
    // No setting names these.
    [{ forwarded: 'proto=https;host=b.test' }, ['http', 'a.test', '80']],
    [{ 'x-forwarded-scheme': 'https', 'x-forwarded-ssl': 'on' }, ['http', 'a.test', '80']],
  ])('%j is %j for the origin, and nothing from another address', async (headers, expected) => {
    expect(await reported('127.0.0.1', headers)).toEqual(expected)
    const { host = 'a.test' } = headers
    const own = host === 'a.test' ? ['http', host, '80'] : ['https', host, '443']
    expect(await reported('127.0.0.2', headers)).toEqual(own)
  })
})

describe('behind trusted proxies that send Forwarded', () => {
  let gateway: NodeGateway
  beforeAll(async () => {
    gateway = await startNodeGateway({
      TRUSTED_PROXIES: '127.0.0.0/8, 2001:db8::/32',
      PROXY_HEADER: 'forwarded',
      PROXY_TARGET_HEADERS: 'forwarded',
    })
  })
  afterAll(() => gateway.close())

  test.each([
    ['for=192.0.2.7', '192.0.2.7'],
    ['for=198.51.100.1, for=192.0.2.7;proto=https', '192.0.2.7'],
    ['for=192.0.2.7, for="[2001:db8::9]:443"', '192.0.2.7'],
    ['for="198.51.100.1, for=192.0.2.7', '192.0.2.7'],
    [`${'for=1,'.repeat(40)}for=192.0.2.7`, '192.0.2.7'],
    [`${'",'.repeat(40)}for=192.0.2.7;host="a,b"`, '192.0.2.7'],
    ['for=192.0.2.7, for=_hidden', undefined],
    [undefined, '127.0.0.1'],
  ])('%s is the address %s, and X-Forwarded-For is not read', async (forwarded, address) => {
    const authorization = `Bearer ${await gateway.token()}`
    const headers = {
      authorization,
      'x-forwarded-for': '198.51.100.9',
      ...(forwarded !== undefined && { forwarded }),
    }
    expect((await fetch(`${gateway.url}/orders`, { headers })).status).toBe(200)
    const received = gateway.reached.at(-1)?.headers
    expect(received?.['x-forwarded-for']).toBe(address)
    expect(received).not.toHaveProperty('forwarded')
  })

  test.each([
    ['for=192.0.2.7;proto=https;host="b.test:8443"', ['https', 'b.test:8443', '8443']],
    ['for=192.0.2.7;proto=https, for="[2001:db8::9]";proto=http', ['https', '127.0.0.1', '443']],
    ['for=192.0.2.1;proto=https, for=192.0.2.7;proto=http', ['http', '127.0.0.1', '80']],
    ['for=192.0.2.1;proto=https, for=192.0.2.7', ['http', '127.0.0.1', '80']],
    ['for=192.0.2.7;proto=https;proto=https', ['http', '127.0.0.1', '80']],
  ])('%s reports %j', async (forwarded, expected) => {
    const authorization = `Bearer ${await gateway.token()}`
    const headers = { host: '127.0.0.1', authorization, forwarded }
    const [response] = await once(send(`${gateway.url}/orders`, { headers }).end(), 'response')
    response.resume()
    const received = gateway.reached.at(-1)?.headers
    const named = ['proto', 'host', 'port'].map((name) => received?.[`x-forwarded-${name}`])
    expect(named).toEqual(expected)
  })
})

test('slow clients hold no connection for ever, and others are served meanwhile', async () => {
  const gateway = await startNodeGateway()
  onTestFinished(() => gateway.close())
  const slow = await dial(gateway.port, 'GET /orders HTTP/1.1\r\nHost: a\r\nX-Slow')
  const closed = once(slow, 'close')
  const authorization = `Bearer ${await gateway.token()}`
  expect((await fetch(`${gateway.url}/orders`, { headers: { authorization } })).status).toBe(200)
  slow.resume()
  await closed
  expect(gateway.reached.length).toBe(1)
})
