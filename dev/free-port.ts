/** Loopback ports for servers that this project starts. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

const HOST = '127.0.0.1'

/**
 * Below the ephemeral ports of the system, apart from the fault proxies, and above the last port
 * that `fetch` blocks (10080, https://fetch.spec.whatwg.org/#port-blocking).
 */
const FIRST_PORT = 11_000
const PORTS = 9_000

/**
 * Returns a free TCP port that no other caller gets until this process ends, so that a slow start
 * cannot lose it. Callers in other processes do not get it either: a UDP socket on the same number
 * marks it. Every server ignores that socket, and the system closes it with the process.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS)
    if ((await mark(port)) && (await canListen(port))) return port
  }
}

/** Reports whether this process has marked the port; false if another caller has. */
async function mark(port: number): Promise<boolean> {
  const socket = createSocket('udp4').unref()
  socket.bind({ port, address: HOST, exclusive: true })
  const isOurs = await succeeds(once(socket, 'listening'))
  if (!isOurs) socket.close()
  return isOurs
}

async function canListen(port: number): Promise<boolean> {
  const server = createServer()
  server.listen({ port, host: HOST, exclusive: true })
  if (!(await succeeds(once(server, 'listening')))) return false
  server.close()
  await once(server, 'close')
  return true
}

/** Reports whether the event came before an error. */
const succeeds = (event: Promise<unknown>): Promise<boolean> =>
  event.then(
    () => true,
    () => false,
  )
