/** Upgrades that a server ignores, and requests that a client sends before or after them. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { watchStalls } from '../../../src/runtimes/node/stalled-clients.ts'
import { latestResponses, onHandedOver } from '../../../src/runtimes/node/upgrades.ts'
import { dial } from '../../origin/wire.ts'

const ASKING = 'Host: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n'

test('requests of one connection arrive whole and in order', async () => {
  const warnings: Error[] = []
  const warn = (warning: Error) => warnings.push(warning)
  process.on('warning', warn)
  onTestFinished(() => void process.off('warning', warn))
  const server = createServer(async (request, response) => {
    const name = Buffer.from(request.headers['x-name'] as string, 'latin1').toString('hex')
    const body = await text(request)
    if (body === 'late') await release.promise
    response.end(`${request.method} ${body} ${name};`)
  })
  const release = Promise.withResolvers<void>()
  let upgrades = 0
  const latest = latestResponses(server)
  onHandedOver(server, latest, {
    upgrade(_request, socket) {
      upgrades += 1
      socket.destroy()
    },
    connect: (_request, socket) => void socket.destroy(),
  })
  // It watches each connection once, although Node announces it for each of these requests.
  watchStalls(server, 60_000, latest)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo

  const socket = await dial(port, '')
  let received = ''
  socket.setEncoding('latin1').on('data', (data: string) => {
    received += data
  })
  const request = (body: string) =>
    `POST / HTTP/1.1\r\n${ASKING}X-Name: \xe9\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  for (let count = 1; count <= 20; count += 1) {
    socket.write(request(`body ${count}`), 'latin1')
    await expect.poll(() => received).toContain(`POST body ${count} e9;`)
  }
  // Pipelined, and in pieces.
  socket.write(request('first') + request('second'), 'latin1')
  await expect.poll(() => received).toContain('POST second e9;')
  const slow = request('in pieces')
  socket.write(slow.slice(0, -6), 'latin1')
  socket.write(slow.slice(-6), 'latin1')
  await expect.poll(() => received).toContain('POST in pieces e9;')
  expect(received.indexOf('POST first')).toBeLessThan(received.indexOf('POST second'))

  // A response that is not complete holds up what follows.
  socket.write(request('late') + request('after') + request('end'), 'latin1')
  release.resolve()
  await expect.poll(() => received).toContain('POST end e9;')
  expect(received.indexOf('POST late')).toBeLessThan(received.indexOf('POST after'))

  socket.write(request('last').replace('h2c', 'websocket'), 'latin1')
  await once(socket, 'close')
  expect([upgrades, warnings]).toEqual([1, []])
})
