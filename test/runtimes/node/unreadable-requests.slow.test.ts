/** Requests that are not readable, behind readable ones on the same connection, on Node. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sendRaw } from '../../harness/raw.ts'
import { type NodeGateway, startNodeGateway } from './gateway.ts'

let gateway: NodeGateway

beforeAll(async () => {
  gateway = await startNodeGateway({ POLICY: './transport-policy.ts' }, (request, response) => {
    // Later than the parser reads the rest.
    request.resume().on('end', () => setTimeout(() => response.end(`for ${request.url}`), 50))
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

  test('at the beginning of a connection are refused', async () => {
    expect(await responsesTo('\0\x01 no request\r\n\r\n')).toEqual(['400'])
  })
})

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
