/** Connections of upgrades that are refused, and of WebSockets that begin when the server stops. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, createServer as listenTcp, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, expect, test } from 'vitest'
import { createBackgroundWork } from '../../../src/runtimes/node/background-work.ts'
import { Fields } from '../../../src/runtimes/node/fields.ts'
import { listen as listenAsServe } from '../../../src/runtimes/node/listen.ts'
import { createListeners, type Listeners } from '../../../src/runtimes/node/request-listener.ts'
import { UpgradedResponse } from '../../../src/runtimes/node/upgraded-response.ts'

const HANDSHAKE = 'GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

async function listen(answer: () => Promise<Response>) {
  const listeners: Listeners = createListeners({ fetch: answer }, createBackgroundWork())
  const server: Server = createServer(listeners.request)
  server.on('upgrade', listeners.upgrade)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close())
  const { port } = server.address() as AddressInfo
  const connections = () =>
    new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)))
  return { port, listeners, connections }
}

function dial(port: number): Socket {
  const client = connect(port, '127.0.0.1').on('error', () => {})
  client.write(HANDSHAKE)
  closers.push(() => client.destroy())
  return client
}

test('a refused client that sends and never closes does not keep its connection', async () => {
  const { port, connections } = await listen(async () => new Response('no', { status: 403 }))
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  client.on('error', () => {}).write(HANDSHAKE)
  closers.push(() => client.destroy())
  client.write(Buffer.alloc(3_000_000))
  const [head] = (await once(client, 'data')) as [Buffer]
  expect(head.toString()).toMatch(/^HTTP\/1\.1 403 /)
  await expect.poll(connections).toBe(0)
})

test('a WebSocket that the origin accepts after the stop began is closed', async () => {
  const { promise: origin, resolve } = Promise.withResolvers<Duplex>()
  const { port, listeners, connections } = await listen(async () => {
    return new UpgradedResponse(await origin, new Fields()) as unknown as Response
  })
  const client = dial(port)
  await expect.poll(connections).toBe(1)
  listeners.closeWebSockets()
  const peer = listenTcp((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1')
  await once(peer, 'listening')
  closers.push(() => peer.close())
  resolve(connect((peer.address() as AddressInfo).port, '127.0.0.1'))
  const parts: Buffer[] = []
  client.on('data', (part: Buffer) => parts.push(part))
  await once(client, 'close')
  expect(Buffer.concat(parts).toString('latin1')).toContain('the server is stopping')
  await expect.poll(connections).toBe(0)
})

test('responses that wait in front of CONNECT do not count as open when their client has left', async () => {
  const late = Promise.withResolvers<Response>()
  const listeners = createListeners({ fetch: () => late.promise }, createBackgroundWork())
  const limits = { maxHeaderSize: 16_384, stallMs: 60_000 }
  const place = { host: '127.0.0.1', port: 0 }
  const server = createServer()
  server.on('request', listeners.request)
  const { url, end } = await listenAsServe(server, listeners, limits, place)
  const client = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
  const head = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
  client.write(head + head + head + head.replace('GET /', 'CONNECT a:1'))
  await expect.poll(listeners.open).toBe(3)
  client.resetAndDestroy()
  await once(client, 'close')
  late.resolve(new Response('late'))
  await expect.poll(listeners.open).toBe(0)
  await end(0)
})
