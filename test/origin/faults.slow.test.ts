import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { freePort } from '../harness/process.ts'
import { startTcpOrigin } from './origin-server.ts'
import { RUNTIMES, startForwarding } from './runtimes.ts'
import { dial, exchange } from './wire.ts'
import type { Running } from './workerd.ts'

describe.each(RUNTIMES)('on $name', (runtime) => {
  let origin: Awaited<ReturnType<typeof startTcpOrigin>>
  let gateway: Running
  let answer: (socket: Socket) => void = () => {}

  beforeAll(async () => {
    origin = await startTcpOrigin((socket) => answer(socket))
    gateway = await startForwarding(runtime, `http://127.0.0.1:${origin.port}`)
  })
  beforeEach(() => {
    origin.received.length = 0
  })
  afterAll(() => Promise.all([gateway?.stop(), origin?.close()]))

  /** Long enough for the headers on a busy machine. */
  const DEADLINE_MS = 1_500
  const QUICK = 'Test-Route: {"originTimeoutMs":200}\r\n'
  /** Less than the test Worker runs after its response, which would end the request as well. */
  const SOON = { timeout: 20_000 }
  const PATIENT = 'Test-Route: {"originTimeoutMs":60000}\r\n'

  function send(path: string, headers = PATIENT, method = 'GET') {
    return exchange(
      gateway.port,
      `${method} ${path} HTTP/1.1\r\nHost: gateway.test\r\n${headers}\r\n`,
    )
  }

  /** The requests of the origin, without connections that had none: a pool may open them ahead. */
  const requests = () => origin.received.filter((head) => head !== '')

  /** Expects that the gateway still answers correctly in the same workerd. */
  async function expectWell(): Promise<void> {
    answer = (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell')
    const reply = await send('/well')
    expect([reply.status, reply.body, reply.aborted]).toEqual([200, 'well', false])
  }

  describe('an origin without a response', () => {
    test('a refused connection is 502 [R23]', async () => {
      const deaf = await startForwarding(runtime, `http://127.0.0.1:${await freePort()}`)
      const reply = await exchange(deaf.port, 'GET /x HTTP/1.1\r\nHost: gateway.test\r\n\r\n')
      expect([reply.status, reply.body]).toEqual([502, '{"fault":"unreachable"}'])
      await deaf.stop()
    })

    test.each([
      ['closes the connection', ''],
      ['speaks another protocol', 'SSH-2.0-OpenSSH\r\n\r\n'],
      ['breaks off in its headers', 'HTTP/1.1 200 OK\r\nContent-'],
      ['has an invalid status', 'HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n'],
    ])(
      'an origin that %s is 502 after one call, and the next request succeeds [R25]',
      async (_, text) => {
        for (const method of ['GET', 'DELETE']) {
          origin.received.length = 0
          answer = (socket) => socket.end(text)
          const reply = await send('/odd', PATIENT, method)
          expect(reply.status).toBe(502)
          expect(reply.body).toMatch(/^\{"fault":"(?:unreachable|malformed)"\}$/)
          expect(requests()).toHaveLength(1)
        }
        await expectWell()
      },
    )

    test.each([
      ['one field', `X-Big: ${'y'.repeat(131_072)}\r\n`],
      [
        '200 fields',
        Array.from({ length: 200 }, (_, n) => `X-${n}: ${'y'.repeat(700)}\r\n`).join(''),
      ],
    ])(
      'a header above 128 KiB, of %s, is 502, and the next request succeeds [R25]',
      async (_, fields) => {
        answer = (socket) => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${fields}\r\nok`)
        const reply = await send('/large')
        expect([reply.status, reply.body]).toEqual([502, '{"fault":"too_large"}'])
        expect(requests()).toHaveLength(1)
        await expectWell()
      },
    )

    test('silence is 504 at the deadline after one call, and the call is cancelled [R24]', async () => {
      let released: Promise<unknown> = Promise.resolve()
      answer = (socket) => {
        released = once(socket, 'close')
      }
      const reply = await send('/silent', QUICK)
      expect([reply.status, reply.body]).toEqual([504, '{"fault":"timeout"}'])
      await released
      expect(requests()).toHaveLength(1)
      await expectWell()
    })

    test('the deadline applies to headers only; a body may take longer [R24]', async () => {
      answer = (socket) => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsl')
        setTimeout(() => socket.end('ow'), 2 * DEADLINE_MS)
      }
      const reply = await send('/slow', `Test-Route: {"originTimeoutMs":${DEADLINE_MS}}\r\n`)
      expect([reply.status, reply.body, reply.aborted]).toEqual([200, 'slow', false])
    })

    test('a client that leaves cancels its request to the origin [R24]', SOON, async () => {
      const connected = Promise.withResolvers<Socket>()
      answer = connected.resolve
      const client = await dial(gateway.port, `GET /left HTTP/1.1\r\nHost: g\r\n${PATIENT}\r\n`)
      const socket = await connected.promise
      const released = once(socket, 'close')
      client.resetAndDestroy()
      await released
      await expectWell()
    })
  })

  describe('a response that breaks off', () => {
    test.each([
      ['before its declared length', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort', 'end'],
      [
        'before its declared length, by reset',
        'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort',
        'reset',
      ],
      [
        'between chunks',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n',
        'end',
      ],
      [
        'within a chunk',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nshort',
        'reset',
      ],
      [
        'with an invalid chunk',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nzz\r\n',
        '',
      ],
      [
        'before its declared length, compressed',
        'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 100\r\n\r\nshort',
        'end',
      ],
    ])('%s, breaks off for the client as well [R25]', async (_, text, how) => {
      answer = (socket) => {
        socket.write(text)
        setTimeout(() => {
          if (how === 'end') socket.end()
          if (how === 'reset') socket.resetAndDestroy()
        }, 50)
      }
      const reply = await send('/broken')
      expect(reply.aborted).toBe(true)
      await expectWell()
    })
  })
})
