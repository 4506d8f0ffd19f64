/**
 * The framing of requests, byte for byte, on each runtime: what the origin receives for requests that
 * servers read in different ways. A request that is hidden in another one must never reach the origin.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startHttpOrigin } from './origin-server.ts'
import { RUNTIMES, startForwarding, type TestRuntime } from './runtimes.ts'
import type { Running } from './workerd.ts'

const HIDDEN = 'GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n'
const HIDDEN_CHUNK = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`
const NO_CHUNKS = `0\r\n\r\n${HIDDEN}`

const get = (fields = '', line = 'GET /first HTTP/1.1') => `${line}\r\nHost: a\r\n${fields}\r\n`
const post = (fields: string, body: string) =>
  `POST /first HTTP/1.1\r\nHost: a\r\n${fields}\r\n\r\n${body}`
const chunked = (body: string) => post('Transfer-Encoding: chunked', body)
const sized = (length: number | string, body: string) => post(`Content-Length: ${length}`, body)

/** A row that both runtimes refuse. */
type Refused = readonly [name: string, text: string]

const REFUSED: Readonly<Record<string, readonly Refused[]>> = {
  'the length': [
    ['two different lengths', sized(`5\r\nContent-Length: ${5 + HIDDEN.length}`, `hello${HIDDEN}`)],
    ['the longer one first', sized(`${5 + HIDDEN.length}\r\nContent-Length: 5`, `hello${HIDDEN}`)],
    ['a list', sized('5, 5', 'hello')],
    ['a plus', sized('+5', 'hello')],
    ['a minus', sized('-5', 'hello')],
    ['a hexadecimal number', sized('0x5', 'hello')],
    ['a space in it', sized('5 5', 'hello')],
    ['no digit', sized('', HIDDEN)],
    ['more than 64 bits', sized('18446744073709551621', `hello${HIDDEN}`)],
    ['a folded field', post('X: a\r\n Content-Length: 5', HIDDEN)],
    ['a body of GET', get(`Connection: close\r\nContent-Length: ${HIDDEN.length}\r\n`) + HIDDEN],
  ],
  'the transfer coding': [
    ['an unknown one', post('Transfer-Encoding: xchunked', NO_CHUNKS)],
    ['an unknown one and a length', sized('5\r\nTransfer-Encoding: xchunked', NO_CHUNKS)],
    ['identity', post('Transfer-Encoding: identity', HIDDEN)],
    ['chunked before another', post('Transfer-Encoding: chunked, identity', NO_CHUNKS)],
    ['two fields', post('Transfer-Encoding: chunked\r\nTransfer-Encoding: x', NO_CHUNKS)],
    ['a vertical tab', post('Transfer-Encoding: \x0bchunked', NO_CHUNKS)],
    ['quotes', post('Transfer-Encoding: "chunked"', NO_CHUNKS)],
    ['a space before the colon', post('Transfer-Encoding : chunked', NO_CHUNKS)],
    ['a tab before the colon', post('Transfer-Encoding\t: chunked', NO_CHUNKS)],
    ['a folded field', post('Transfer-Encoding:\r\n chunked', NO_CHUNKS)],
    ['a field behind a carriage return', post('X: a\rTransfer-Encoding: chunked', NO_CHUNKS)],
    [
      'chunks in HTTP/1.0',
      `POST /first HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${NO_CHUNKS}`,
    ],
    [
      'chunks in HTTP/1.0 that keeps the connection',
      `POST /first HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n${NO_CHUNKS}`,
    ],
  ],
  'the chunks': [
    ['a prefix 0x', chunked('0x5\r\nhello\r\n0\r\n\r\n')],
    ['a plus', chunked('+5\r\nhello\r\n0\r\n\r\n')],
    ['a minus', chunked('-5\r\nhello\r\n0\r\n\r\n')],
    ['a space before the size', chunked(' 5\r\nhello\r\n0\r\n\r\n')],
    ['a size of more than 64 bits', chunked('fffffffffffffffff\r\nhello\r\n0\r\n\r\n')],
    ['a size that is 5 in 64 bits', chunked(`10000000000000005\r\nhello\r\n${NO_CHUNKS}`)],
    ['no size', chunked('\r\nhello\r\n0\r\n\r\n')],
    ['line feeds', chunked(`5\nhello\n0\n\n${HIDDEN}`)],
    ['a line feed in an extension', chunked(`2;\nxx\r\n${HIDDEN_CHUNK}`)],
    ['data longer than its size', chunked(`5\r\nhelloXX${NO_CHUNKS}`)],
    ['a carriage return after the data', chunked(`5\r\nhello\rX${NO_CHUNKS}`)],
    ['an extension of 40 KB', chunked(`5;a=${'b'.repeat(40_000)}\r\nhello\r\n0\r\n\r\n`)],
  ],
  'the fields': [
    ['a folded one', get('X-A: b\r\n c\r\n')],
    ['a folded first one', 'GET /first HTTP/1.1\r\n X: a\r\nHost: a\r\n\r\n'],
    ['a NUL in a value', get('X-A: b\0c\r\n')],
    ['a NUL in a name', get('X\0A: b\r\n')],
    ['a carriage return in a value', get('X-A: b\rc\r\n')],
    ['another control character', get('X-A: b\x01c\r\n')],
    ['no colon', get('X-A\r\n')],
    ['no name', get(': a\r\n')],
    ['a name with a parenthesis', get('X(A): b\r\n')],
    ['no Host', 'GET /first HTTP/1.1\r\n\r\n'],
    ['two Hosts', get('Host: b\r\n')],
    ['two equal Hosts', get('Host: a\r\n')],
    ['two Hosts beside an absolute target', get('Host: b\r\n', 'GET http://a/first HTTP/1.1')],
    ['fields of 40 KB', get(`X-A: ${'b'.repeat(40_000)}\r\n`)],
    ['fields of 200 KB', get(`X-A: ${'b'.repeat(200_000)}\r\n`)],
    ['3,000 fields', get(Array.from({ length: 3_000 }, (_, at) => `X-${at}: b\r\n`).join(''))],
  ],
  'the request line': [
    ['a tab', 'GET\t/first HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['carriage returns only', 'GET /first HTTP/1.1\rHost: a\r\r'],
    ['a space before it', ` ${get()}`],
    ['HTTP/0.9', 'GET /first\r\n\r\n'],
    ['HTTP/1.9', get('', 'GET /first HTTP/1.9')],
    ['HTTP/2.0', get('', 'GET /first HTTP/2.0')],
    ['lower case', get('', 'GET /first http/1.1')],
    ['the PROXY protocol', `PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n${get()}`],
    [
      'version 2 of the PROXY protocol',
      `\r\n\r\n\0\r\nQUIT\n!\x11\0\x0c${'\x01'.repeat(12)}${get()}`,
    ],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown method', get('', 'FOO /first HTTP/1.1')],
    ['CONNECT', get('', 'CONNECT a:80 HTTP/1.1')],
    ['a target of 40 KB', get('', `GET /${'a'.repeat(40_000)} HTTP/1.1`)],
    ['a backslash', get('', 'GET /a\\..\\first HTTP/1.1')],
  ],
}

/** Requests that pass on both runtimes, and what the origin receives. */
const PASSED: readonly (readonly [name: string, text: string, received: readonly string[]])[] = [
  [
    'two requests in one segment',
    `${sized(5, 'hello')}${get('', 'GET /second HTTP/1.1')}`,
    ['POST /first hello', 'GET /second '],
  ],
  ['chunks', chunked('5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n'), ['POST /first hello!']],
  ['an extension of a chunk', chunked('5;a=b\r\nhello\r\n0\r\n\r\n'), ['POST /first hello']],
  [
    'zeros before a size',
    chunked('0000000000000000000005\r\nhello\r\n0\r\n\r\n'),
    ['POST /first hello'],
  ],
  ['a hidden request in a chunk', chunked(HIDDEN_CHUNK), [`POST /first ${HIDDEN}`]],
  ['an empty line before the request', `\r\n${get()}`, ['GET /first ']],
  ['a byte above ASCII in a value', get('X-A: \xe9\r\n'), ['GET /first ']],
  ['Expect: 100-continue', sized('5\r\nExpect: 100-continue', 'hello'), ['POST /first hello']],
]

/** Requests that the parser of workerd accepts, and the server on Node refuses. */
const REFUSED_ON_NODE: typeof PASSED = [
  ['an absolute target of another host', get('', 'GET http://b/first HTTP/1.1'), ['GET /first ']],
  ['a target without a slash', get('', 'GET first HTTP/1.1'), ['GET / ']],
  ['two equal lengths', sized('5\r\nContent-Length: 5', 'hello'), ['POST /first hello']],
  [
    'chunks and a length',
    sized(`3\r\nTransfer-Encoding: chunked`, HIDDEN_CHUNK),
    [`POST /first ${HIDDEN}`],
  ],
  ['the length first', sized(`5\r\nTransfer-Encoding: chunked`, '0\r\n\r\n'), ['POST /first ']],
  [
    'chunked twice',
    post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', '0\r\n\r\n'),
    ['POST /first '],
  ],
  ['line feeds only', 'GET /first HTTP/1.1\nHost: a\n\n', ['GET /first ']],
  ['a line feed after a field', get('X-A: b\nX-B: c\r\n'), ['GET /first ']],
  ['a space after the size of a chunk', chunked('5 \r\nhello\r\n0\r\n\r\n'), ['POST /first hello']],
  [
    'a length among the trailers',
    chunked('5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n'),
    ['POST /first hello'],
  ],
  ['an unknown expectation', sized('5\r\nExpect: x', 'hello'), ['POST /first hello']],
]

/** Requests that Node's parser accepts, and workerd refuses. */
const REFUSED_ON_WORKERD: typeof PASSED = [
  ['two spaces before the target', get('', 'GET  /first HTTP/1.1'), ['GET /first ']],
]

let origin: Awaited<ReturnType<typeof startHttpOrigin>>
/** The complete requests that the origin has received. */
let received: string[] = []
const gateways = new Map<TestRuntime['name'], Running>()

beforeAll(async () => {
  origin = await startHttpOrigin((request, response) => {
    let body = ''
    request.on('error', () => {})
    request.setEncoding('latin1').on('data', (text) => {
      body += text
    })
    request.on('end', () => {
      received.push(`${request.method} ${request.url} ${body}`)
      response.end()
    })
  })
  for (const runtime of RUNTIMES)
    gateways.set(runtime.name, await startForwarding(runtime, `http://127.0.0.1:${origin.port}`))
})
beforeEach(() => {
  received = []
})
afterAll(() => Promise.all([...[...gateways.values()].map(({ stop }) => stop()), origin?.close()]))

/**
 * Sends `text`, and returns the statuses of the final responses: as many as `expected`, or all until the
 * connection ends.
 */
async function statusesOf(port: number, text: string, expected: number): Promise<number[]> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(text, 'latin1')
  let answer = ''
  const statuses = () =>
    [...answer.matchAll(/HTTP\/1\.1 ([2-5]\d\d) [\s\S]*?\r\n\r\n/g)].map(([, status]) =>
      Number(status),
    )
  await new Promise<void>((resolve) => {
    socket.setEncoding('latin1').on('data', (part) => {
      answer += part
      if (statuses().length >= expected) resolve()
    })
    socket.on('close', () => resolve())
  })
  socket.destroy()
  return statuses()
}

describe.each(RUNTIMES)('on $name [S75, S78]', ({ name }) => {
  const port = () => gateways.get(name)?.port ?? 0

  async function expectRefused(text: string) {
    // If a request is hidden, all that follows is read until the connection ends.
    const expected = text.includes(HIDDEN) ? Number.POSITIVE_INFINITY : 1
    const statuses = await statusesOf(port(), text, expected)
    for (const status of statuses) expect(status).toBeGreaterThanOrEqual(400)
    expect(statuses.length).toBeLessThanOrEqual(1)
    expect(received).toEqual([])
  }

  async function expectPassed(text: string, requests: readonly string[]) {
    const statuses = await statusesOf(port(), text, requests.length)
    expect(statuses).toEqual(requests.map(() => 200))
    expect(received).toEqual(requests)
  }

  describe.each(Object.entries(REFUSED))('%s', (_, rows) => {
    test.each(rows)('%s: refused, and the origin receives no request', (_, text) =>
      expectRefused(text),
    )
  })

  test.each(PASSED)('%s: the origin receives what was sent', (_, text, requests) =>
    expectPassed(text, requests),
  )

  test.each(REFUSED_ON_NODE)(
    '%s: refused on Node, and read in one way on workerd',
    (_, text, requests) => (name === 'Node' ? expectRefused(text) : expectPassed(text, requests)),
  )

  test.each(REFUSED_ON_WORKERD)(
    '%s: refused on workerd, and read in one way on Node',
    (_, text, requests) =>
      name === 'workerd' ? expectRefused(text) : expectPassed(text, requests),
  )
})
