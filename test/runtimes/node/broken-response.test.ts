import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { Dispatcher } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { fieldsOf } from '../../../src/runtimes/node/fields.ts'
import { OriginResponse } from '../../../src/runtimes/node/origin-response.ts'
import { exchange } from '../../origin/wire.ts'

const HEAD = { 'content-length': '100' }
const CHUNKED = { 'transfer-encoding': 'chunked' }
const CHUNK = Buffer.from('short')
const FAILURE = new Error('the origin has reset the connection')

let server: Server | undefined

afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

/** Answers each request with a response of an origin that has this head. */
async function listen(
  head: Readonly<Record<string, string>>,
  write: (response: OriginResponse, outgoing: ServerResponse) => void,
): Promise<number> {
  const controller = { pause() {}, resume() {}, abort() {} }
  server = createServer((_, outgoing) => {
    const known = controller as unknown as Dispatcher.DispatchController
    write(new OriginResponse(200, fieldsOf(head), true, known), outgoing)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const get = (port: number) => exchange(port, `GET / HTTP/1.1\r\nHost: gateway.test\r\n\r\n`)

describe('an origin that fails in the same turn of the event loop [R25]', () => {
  test('before the response is written, gives the client its head and an incomplete body', async () => {
    const port = await listen(HEAD, (response, outgoing) => {
      response.data(CHUNK)
      response.fail(FAILURE)
      response.writeTo(outgoing)
    })
    expect(await get(port)).toMatchObject({ status: 200, body: 'short', aborted: true })
  })

  test('without a byte of the body, gives the client its head', async () => {
    const port = await listen(HEAD, (response, outgoing) => {
      response.writeTo(outgoing)
      response.fail(FAILURE)
    })
    expect(await get(port)).toMatchObject({ status: 200, body: '', aborted: true })
  })

  test('in a body of chunks, does not send the last chunk', async () => {
    const port = await listen(CHUNKED, (response, outgoing) => {
      response.writeTo(outgoing)
      response.data(CHUNK)
      response.fail(FAILURE)
    })
    expect(await get(port)).toMatchObject({ status: 200, body: 'short', aborted: true })
  })

  test('resets a client of HTTP/1.0, for which the end of the connection is the end of the body', async () => {
    const port = await listen({}, (response, outgoing) => {
      response.writeTo(outgoing)
      response.data(CHUNK)
      response.fail(FAILURE)
    })
    await expect(readToEnd(port)).rejects.toMatchObject({ code: 'ECONNRESET' })
  })
})

/** Sends a request in HTTP/1.0, and rejects if the connection does not end in order. */
async function readToEnd(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.write('GET / HTTP/1.0\r\n\r\n')
  for await (const _ of socket) {
    // Only the end counts.
  }
}
