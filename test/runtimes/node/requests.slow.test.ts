/** Requests as the server on Node reads them, byte for byte. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { dial, exchange } from '../../origin/wire.ts'
import { type NodeGateway, startNodeGateway } from './gateway.ts'

let gateway: NodeGateway
let token: string
/** Resolves when the origin has lost the connection of a request that it does not answer. */
let lost = Promise.withResolvers<void>()

beforeAll(async () => {
  gateway = await startNodeGateway({}, (request, response) => {
    const { 'x-answer': answer } = request.headers
    if (answer === 'never') return void response.on('close', () => lost.resolve())
    if (answer === 'half') {
      response.writeHead(200, { 'content-length': 10 })
      response.write('half', () => response.destroy())
      return
    }
    if (answer === 'large') {
      response.writeHead(200)
      for (let piece = 0; piece < 64; piece += 1) response.write(Buffer.alloc(65_536, piece))
      return void response.end()
    }
    request.resume().on('end', () => response.end('[]'))
  })
  token = await gateway.token({ claims: { roles: ['writer'] } })
})
beforeEach(() => {
  gateway.reached.length = 0
  lost = Promise.withResolvers<void>()
})
afterAll(() => gateway?.close())

const send = (line: string, ...headers: string[]) =>
  exchange(gateway.port, [line, `Authorization: Bearer ${token}`, ...headers, '', ''].join('\r\n'))

describe('the target', () => {
  test.each([
    ['a path', 'GET /orders HTTP/1.1', '/orders'],
    [
      'a query with any characters',
      'GET /orders?a=<"{}|^`\\>&b=%zz HTTP/1.1',
      '/orders?a=<"{}|^`\\>&b=%zz',
    ],
    ['the absolute form', 'GET http://A/orders?a=1 HTTP/1.1', '/orders?a=1'],
  ])('of %s reaches the origin', async (_, line, target) => {
    expect((await send(line, 'Host: a')).status).toBe(200)
    expect(gateway.reached.map(({ url }) => url)).toEqual([target])
    expect(gateway.reached[0]?.headers.host).not.toMatch(/^a$/i)
  })

  test.each([
    ['a dot segment', 'GET /public/../orders HTTP/1.1'],
    ['an encoded dot segment', 'GET /public/%2e%2e/orders HTTP/1.1'],
    ['a backslash', 'GET /public\\..\\orders HTTP/1.1'],
    ['a fragment', 'GET /orders#a HTTP/1.1'],
    ['a fragment in the absolute form', 'GET http://a/orders#/../x HTTP/1.1'],
    ['an authority other than that of Host', 'GET http://other.test/orders HTTP/1.1'],
    ['an authority with a user', 'GET http://a@b/orders HTTP/1.1'],
    ['an absolute form without a host', 'GET http:///orders HTTP/1.1'],
    ['bytes above ASCII', 'GET /orders?a=\xc3\xa9 HTTP/1.1'],
    ['another scheme', 'GET ftp://a/orders HTTP/1.1'],
    ['an asterisk', 'OPTIONS * HTTP/1.1'],
  ])('with %s is refused', async (_, line) => {
    expect((await send(line, 'Host: a')).status).toBe(400)
    expect(gateway.reached).toEqual([])
  })

  test.each([
    'a b',
    'a/orders?',
    'a#',
    'a@b',
    'a:b',
    'a:123456',
    'a:65536',
    '[::1',
    '[1]',
    '1.2.3.4.5',
    'a,b',
    'é',
  ])('with the Host %s is refused', async (host) => {
    expect((await send('GET /orders HTTP/1.1', `Host: ${host}`)).status).toBe(400)
    expect(gateway.reached).toEqual([])
  })

  test.each(['a', 'a.test:8080', '[::1]:8080', '127.0.0.1'])(
    'with the Host %s passes',
    async (host) => {
      expect((await send('GET /orders HTTP/1.1', `Host: ${host}`)).status).toBe(200)
    },
  )
})

describe('the fields', () => {
  test('two tokens are refused, whichever is first', async () => {
    const { status } = await send('GET /orders HTTP/1.1', 'Host: a', 'Authorization: Bearer x')
    expect(status).toBe(400)
    expect(gateway.reached).toEqual([])
  })

  test.each([
    ['GET', 'Content-Length: 1'],
    ['GET', 'Transfer-Encoding: chunked'],
  ])('a body of %s with %s is refused', async (method, framing) => {
    const { status } = await send(
      `${method} /orders HTTP/1.1`,
      'Host: a',
      framing,
      'Connection: close',
    )
    expect(status).toBe(400)
    expect(gateway.reached).toEqual([])
  })
})

describe('the response', () => {
  test('of HEAD has the fields of GET and no body', async () => {
    const { status, headers, body } = await send('HEAD /orders HTTP/1.1', 'Host: a')
    expect([status, body]).toEqual([200, ''])
    expect(headers).toMatch(/^x-request-id: /m)
    expect(gateway.reached.map(({ method }) => method)).toEqual(['HEAD'])
  })

  test('that breaks off stays incomplete', async () => {
    const { status, aborted } = await send('GET /orders HTTP/1.1', 'Host: a', 'X-Answer: half')
    expect([status, aborted]).toEqual([200, true])
  })

  test('waits for a client that reads slowly, and loses nothing', async () => {
    const socket = await dial(
      gateway.port,
      `GET /orders HTTP/1.0\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nX-Answer: large\r\n\r\n`,
    )
    socket.pause()
    const pieces: Buffer[] = []
    for await (const piece of socket) {
      pieces.push(piece as Buffer)
      await sleep(1)
    }
    const whole = Buffer.concat(pieces)
    const body = whole.subarray(whole.indexOf('\r\n\r\n') + 4)
    expect(body.length).toBe(64 * 65_536)
    expect(body.every((byte: number, at: number) => byte === Math.floor(at / 65_536))).toBe(true)
  })

  test('of a client that has left ends the call of the origin', async () => {
    const socket = await dial(
      gateway.port,
      `GET /orders HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nX-Answer: never\r\n\r\n`,
    )
    await expect.poll(() => gateway.reached.length).toBe(1)
    socket.destroy()
    await lost.promise
  })
})
