/** Requests that are not readable, behind readable ones on the same connection, on Node. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { refuseUnreadable } from '../../../src/runtimes/node/unreadable-requests.ts'
import { latestResponses } from '../../../src/runtimes/node/upgrades.ts'
import { sendRaw } from '../../harness/raw.ts'
import { type NodeGateway, startNodeGateway } from './gateway.ts'

let gateway: NodeGateway

beforeAll(async () => {
  gateway = await startNodeGateway({ POLICY: './transport-policy.ts' }, (request, response) => {
    // Later than the parser reads the rest.
    const delayMs = request.url?.includes('fast') ? 0 : 50
    request.resume().on('end', () => setTimeout(() => response.end(`for ${request.url}`), delayMs))
  })
})
beforeEach(() => {
  gateway.reached.length = 0
})
afterAll(() => gateway?.close())

const get = (path: string, fields = '') =>
  `GET ${path} HTTP/1.1\r\nHost: gateway.test\r\n${fields}\r\n`
const post = (path: string) =>
  `POST ${path} HTTP/1.1\r\nHost: gateway.test\r\nContent-Length: 5\r\n\r\nhello`

/** Sends bytes in one write, and returns the responses: the status, and what the origin answered. */
async function responsesTo(text: string): Promise<string[]> {
  const { text: all } = await sendRaw(gateway.url, Buffer.from(text, 'latin1'))
  return responsesIn(all)
}

function responsesIn(all: string): string[] {
  return all
    .split(/(?=HTTP\/1\.1 \d{3} )/)
    .filter((message) => message !== '')
    .map((message) =>
      `${message.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length)} ${/for \S+/.exec(message)?.[0] ?? ''}`.trim(),
    )
}
/** The order of requests on different connections to the origin is open. */
const reached = () => gateway.reached.map(({ method, url }) => `${method} ${url}`).sort()

describe('bytes that are not readable', () => {
  test.each([
    ['no HTTP', '\0\x01 no request\r\n\r\n'],
    ['an unknown method', 'FOO /x HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a field without a colon', 'GET /x HTTP/1.1\r\nodd\r\n\r\n'],
    ['two lengths', get('/downloads/9', 'Content-Length: 1\r\nContent-Length: 2\r\n')],
  ])('(%s) are refused after the responses to complete requests', async (_, odd) => {
    const responses = await responsesTo(post('/uploads/1') + get('/downloads/2') + odd)
    expect(responses).toEqual(['200 for /uploads/1', '200 for /downloads/2', '400'])
    expect(reached()).toEqual(['GET /downloads/2', 'POST /uploads/1'])
  })

  test('are refused with 431 if the fields are too large', async () => {
    const large = get('/downloads/9', `X-Large: ${'x'.repeat(40_000)}\r\n`)
    const responses = await responsesTo(post('/uploads/1') + large)
    expect(responses).toEqual(['200 for /uploads/1', '431'])
  })

  test.each([
    ['another request', get('/downloads/9')],
    ['no HTTP', '\0\x01'],
  ])('after Connection: close (%s) are ignored', async (_, odd) => {
    const last = get('/downloads/2', 'Connection: close\r\n')
    const responses = await responsesTo(get('/downloads/1') + last + odd)
    expect(responses).toEqual(['200 for /downloads/1', '200 for /downloads/2'])
    expect(reached()).toEqual(['GET /downloads/1', 'GET /downloads/2'])
  })

  test('in a body are refused in the turn of their request, which does not reach the origin whole', async () => {
    const broken =
      'POST /uploads/2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX'
    expect(await responsesTo(get('/downloads/1') + broken)).toEqual(['200 for /downloads/1', '400'])
    for (const { complete, url } of gateway.reached) expect(complete).toBe(url === '/downloads/1')
  })

  test('are missing: a request that does not arrive in time is refused with 408', async () => {
    const times = { headersTimeout: 50, requestTimeout: 50, connectionsCheckingInterval: 10 }
    const http = createServer(times)
    refuseUnreadable(http, latestResponses(http))
    http.listen(0, '127.0.0.1')
    await once(http, 'listening')
    onTestFinished(() => void http.close())
    const { port } = http.address() as AddressInfo
    const { status, text } = await sendRaw(
      `http://127.0.0.1:${port}`,
      'GET /x HTTP/1.1\r\nHost: a\r\n',
    )
    expect(status).toBe(408)
    expect(JSON.parse(text.split('\r\n\r\n')[1] ?? '')).toMatchObject({
      status,
      code: 'malformed_request',
      requestId: /^X-Request-Id: (.*)\r$/m.exec(text)?.[1],
    })
  })

  test('at the beginning of a connection are refused', async () => {
    expect(await responsesTo('\0\x01 no request\r\n\r\n')).toEqual(['400'])
  })
})

test('a broken body whose request has its response gets no second one', async () => {
  const { hostname, port } = new URL(gateway.url)
  const client = connect(Number(port), hostname)
  let received = ''
  client
    .on('error', () => {})
    .on('data', (data) => {
      received += data.toString('latin1')
    })
  const closed = once(client, 'close')
  client.write('POST /unknown HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
  await expect.poll(() => received).toContain('"not_found"')
  client.write('ZZ\r\n')
  await closed
  expect(responsesIn(received)).toEqual(['404'])
})

interface Head {
  readonly bytes: (id: string) => string
  /** The status of its response. An origin that is reached repeats the path. */
  readonly status: number
  readonly path?: (id: string) => string
  /** Whether the connection ends after its response. */
  readonly isLast?: true
  /** The client ends its side after these bytes. */
  readonly isEnd?: true
}

const HOST = 'Host: gateway.test\r\n'
const CHUNKED = 'Transfer-Encoding: chunked\r\n'
const UPGRADE = 'Connection: Upgrade\r\nUpgrade:'
const KEY = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'
const download = (id: string) => `/downloads/fast-${id}`
const upload = (id: string) => `/uploads/fast-${id}`
const slow = (id: string) => `/downloads/slow-${id}`
const socket = (id: string) => `/sockets?fast-${id}`

const HEADS: Readonly<Record<string, Head>> = {
  get: { bytes: (id) => get(download(id)), status: 200, path: download },
  'slow get': { bytes: (id) => get(slow(id)), status: 200, path: slow },
  post: { bytes: (id) => post(upload(id)), status: 200, path: upload },
  'expect 100-continue': {
    bytes: (id) => post(upload(id)).replace(HOST, `${HOST}Expect: 100-continue\r\n`),
    status: 200,
    path: upload,
  },
  'upgrade to h2c': {
    bytes: (id) => get(download(id), `${UPGRADE} h2c\r\n`),
    status: 200,
    path: download,
  },
  trace: { bytes: (id) => get(download(id)).replace('GET', 'TRACE'), status: 405 },
  'upgrade to a WebSocket': {
    bytes: (id) => get(socket(id), `Origin: https://app.test\r\n${KEY}${UPGRADE} websocket\r\n`),
    status: 200,
    path: socket,
    isLast: true,
  },
  connect: { bytes: () => `CONNECT a:1 HTTP/1.1\r\n${HOST}\r\n`, status: 405, isLast: true },
  'no host': { bytes: (id) => get(download(id)).replace(HOST, ''), status: 400, isLast: true },
  'expect x': { bytes: (id) => get(download(id), 'Expect: x\r\n'), status: 417, isLast: true },
  'expect x and h2c': {
    bytes: (id) => get(download(id), `Expect: x\r\n${UPGRADE} h2c\r\n`),
    status: 417,
    isLast: true,
  },
  'expect x and a bad chunk': {
    bytes: (id) => `POST ${upload(id)} HTTP/1.1\r\n${HOST}Expect: x\r\n${CHUNKED}\r\nZZ\r\n`,
    status: 417,
    isLast: true,
  },
  'a bad chunk': {
    bytes: (id) => `POST ${upload(id)} HTTP/1.1\r\n${HOST}${CHUNKED}\r\nZZ\r\n`,
    status: 400,
    isLast: true,
  },
  'a large head': {
    bytes: (id) => get(download(id), `X-Large: ${'x'.repeat(40_000)}\r\n`),
    status: 431,
    isLast: true,
  },
  'no HTTP': { bytes: () => '\0\x01 no request\r\n\r\n', status: 400, isLast: true },
  'half a request': {
    bytes: (id) => get(download(id)).slice(0, -4),
    status: 400,
    isLast: true,
    isEnd: true,
  },
  close: {
    bytes: (id) => get(download(id), 'Connection: close\r\n'),
    status: 200,
    path: download,
    isLast: true,
  },
}

const NAMES = Object.keys(HEADS)
/** Node ends the connection of a client that ends its side while it reads an upgrade, as if it had left. */
const isLeft = (names: readonly string[]): boolean =>
  names.slice(0, Math.max(names.indexOf('half a request'), 0)).includes('upgrade to h2c')
/** All pairs, and a triple of each pair. Each ends with `close`. */
const SEQUENCES = NAMES.flatMap((first, one) =>
  NAMES.flatMap((second, two) => [
    [first, second, 'close'],
    [first, second, NAMES[(one * 5 + two * 3) % NAMES.length] as string, 'close'],
  ]),
).filter((names) => !isLeft(names))
const LANES = 4

/** Sends bytes in one packet or two. Returns what arrives until the end of the connection. */
async function exchange(text: string, isSplit: boolean, ends: boolean): Promise<string> {
  const { hostname, port } = new URL(gateway.url)
  const client = connect({ host: hostname, port: Number(port), noDelay: true })
  let received = ''
  // A connection that ends with unread bytes is reset.
  client
    .on('error', () => {})
    .on('data', (data) => {
      received += data.toString('latin1')
    })
  const closed = once(client, 'close')
  const bytes = Buffer.from(text, 'latin1')
  const half = isSplit ? bytes.length >> 1 : bytes.length
  client.write(bytes.subarray(0, half))
  if (isSplit) {
    await sleep(5)
    client.write(bytes.subarray(half))
  }
  if (ends) client.end()
  await closed
  return received
}

test('every combination of odd requests on a connection has its responses in order, and none after the last', async () => {
  const wrong: unknown[] = []
  const expectedAtOrigin: string[] = []
  const queue = [...SEQUENCES.entries()]
  async function lane() {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [nth, names] = next
      const heads = names.map((name, at) => ({ ...(HEADS[name] as Head), id: `${nth}-${at}` }))
      const endAt = heads.findIndex(({ isEnd }) => isEnd)
      const sent = endAt === -1 ? heads : heads.slice(0, endAt + 1)
      const read = heads.slice(0, heads.findIndex(({ isLast }) => isLast) + 1)
      const paths = read.flatMap(({ path, id }) => (path === undefined ? [] : [path(id)]))
      expectedAtOrigin.push(...paths)
      const expected = read.map(({ status, path, id }) =>
        path === undefined ? `${status}` : `${status} for ${path(id)}`,
      )
      const isSplit = nth % 4 > 1
      const text = sent.map(({ bytes, id }) => bytes(id)).join('')
      const received = await exchange(
        text,
        isSplit,
        read.some(({ isEnd }) => isEnd),
      )
      const responses = responsesIn(received).filter((each) => each !== '100')
      if (responses.join() !== expected.join()) wrong.push({ names, isSplit, responses, expected })
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  expect(wrong).toEqual([])
  const whole = gateway.reached.filter(({ complete }) => complete).map(({ url }) => url)
  expect(whole.sort()).toEqual(expectedAtOrigin.sort())
  expect(await responsesTo(get('/downloads/9', 'Connection: close\r\n'))).toEqual([
    '200 for /downloads/9',
  ])
}, 60_000)

describe('CONNECT', () => {
  const connect = 'CONNECT internal.test:22 HTTP/1.1\r\nHost: internal.test:22\r\n\r\n'

  test('is refused with 405, and what follows is not read', async () => {
    const { status, text } = await sendRaw(gateway.url, connect + get('/downloads/9'))
    expect(status).toBe(405)
    expect(text).toMatch(/^allow:\s*$/im)
    expect(text).toContain('"method_not_allowed"')
    expect(reached()).toEqual([])
  })

  test('is refused after the response to the request before it', async () => {
    expect(await responsesTo(get('/downloads/1') + connect)).toEqual([
      '200 for /downloads/1',
      '405',
    ])
  })
})
