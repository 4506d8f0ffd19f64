/** Upgrades whose origin breaks off at once, through a gateway process on Node. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { Fields } from '../../../src/runtimes/node/fields.ts'
import { type Relays, UpgradedResponse } from '../../../src/runtimes/node/upgraded-response.ts'
import { freePort } from '../../harness/process.ts'
import { dial } from '../../origin/wire.ts'
import { type NodeGateway, startNodeGateway } from './gateway.ts'

const HANDSHAKE = [
  'GET /sockets HTTP/1.1',
  'Host: gateway.test',
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13',
]
const ACCEPTED = [
  'HTTP/1.1 101 Switching Protocols',
  'Upgrade: websocket',
  'Connection: Upgrade',
  // RFC 6455 section 1.3.
  'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=',
]
const messageOf = (lines: readonly string[]) => `${lines.join('\r\n')}\r\n\r\n`

let gateway: NodeGateway
let server: Server
let accept: (socket: Socket) => void = () => {}
const open = new Set<Socket>()

beforeAll(async () => {
  const port = await freePort()
  server = createServer((socket) => {
    open.add(socket)
    socket
      .on('error', () => {})
      .once('close', () => open.delete(socket))
      .once('data', () => accept(socket))
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  gateway = await startNodeGateway({
    ORIGIN_URL: `http://127.0.0.1:${port}`,
    POLICY: './transport-policy.ts',
  })
})
afterAll(async () => {
  for (const socket of open) socket.destroy()
  server?.close()
  await gateway?.close()
})

test.each([
  ['resets the connection', (socket: Socket) => void socket.resetAndDestroy()],
  ['closes the connection', (socket: Socket) => void socket.destroy()],
  ['ends its side of the connection', (socket: Socket) => void socket.end()],
])('an origin that accepts and then %s ends that WebSocket only', async (_, act) => {
  accept = (socket) => socket.write(messageOf(ACCEPTED), () => act(socket))
  for (let round = 0; round < 10; round += 1) {
    const clients = await Promise.all(
      Array.from({ length: 5 }, () => dial(gateway.port, messageOf(HANDSHAKE))),
    )
    await Promise.all(clients.map((client) => once(client.resume(), 'close')))
  }
  expect(gateway.running.child.exitCode).toBeNull()
  await expect.poll(() => open.size).toBe(0)
})

test.each([
  ['resets', (socket: Socket) => void socket.resetAndDestroy()],
  ['closes', (socket: Socket) => void socket.destroy()],
])('an origin that %s the connection before the 101 is written ends the client', async (_, act) => {
  const [ofGateway, origin] = await connected()
  const response = new UpgradedResponse(ofGateway, new Fields())
  const gone = new Promise((resolve) => ofGateway.once('close', resolve))
  act(origin)
  ofGateway.resume()
  await gone
  const [ofServer, client] = await connected()
  const relays: Relays = new Set()
  response.writeTo(ofServer, Buffer.alloc(0), relays)
  await once(client.resume(), 'close')
  expect(relays.size).toBe(0)
})

/** Returns both ends of a connection. */
async function connected(): Promise<[Socket, Socket]> {
  const listener = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void listener.close())
  await once(listener, 'listening')
  const near = connect((listener.address() as AddressInfo).port, '127.0.0.1')
  const [[far]] = (await Promise.all([once(listener, 'connection'), once(near, 'connect')])) as [
    [Socket],
    unknown,
  ]
  far.on('error', () => {})
  return [near, far]
}
