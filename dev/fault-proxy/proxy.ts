/**
 * A TCP proxy that injects faults on demand, for tests and the soak test. It runs between the
 * gateway and a dependency. For protocols in which the client sends first, such as HTTP.
 */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Connection, serveConnection } from './connection.ts'
import { type Fault, type LastingFault, NO_FAULT } from './fault.ts'
import { seededRandom } from './random.ts'
import type { Connections, Traffic } from './state.ts'

const HOST = '127.0.0.1'
/**
 * Below the ephemeral ports of Linux, so that no other process gets this port by chance while the
 * proxy does not listen.
 */
const FIRST_PORT = 20_000
const PORTS = 12_000
const ATTEMPTS = 100
const RETRY_MS = 50

export interface FaultProxyOptions {
  readonly target: { readonly host: string; readonly port: number }
  /** Seed for jitter and garbage. Default 1. */
  readonly seed?: number
}

export interface FaultProxy {
  /** `http://127.0.0.1:<port>`. Use it instead of the target's URL. */
  readonly url: string
  readonly port: number
  /** Sets the fault, for open connections too. Resolves when it is in effect. */
  set(fault: Fault): Promise<void>
  fault(): Fault
  connections(): Connections
  bytes(): Traffic
  close(): Promise<void>
}

/** Starts a proxy on a free loopback port, without a fault. */
export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const random = seededRandom(options.seed ?? 1)
  const traffic = { fromClients: 0, toTarget: 0, fromTarget: 0, toClients: 0 }
  const open = new Map<Socket, Connection>()
  let accepted = 0
  let fault: Fault = NO_FAULT
  let effective: LastingFault = NO_FAULT
  let server: Server | undefined
  let flapping: NodeJS.Timeout | undefined
  let changes = Promise.resolve()

  function accept(socket: Socket): void {
    accepted++
    open.set(
      socket,
      serveConnection(socket, { target: options.target, traffic, random, fault: () => effective }),
    )
    socket.on('close', () => open.delete(socket))
  }

  async function listen(): Promise<Server> {
    const listener = createServer({ allowHalfOpen: true }, accept)
    listener.listen(port, HOST)
    await once(listener, 'listening')
    return listener
  }

  /** Applies a fault. Changes run one after another, so the last one remains in effect. */
  function apply(next: LastingFault): Promise<void> {
    changes = changes.then(async () => {
      effective = next
      if (next.kind === 'refuse') {
        server?.close()
        server = undefined
        for (const connection of open.values()) connection.reset()
        return
      }
      for (let attempt = 1; server === undefined; attempt++) {
        try {
          server = await listen()
        } catch (error) {
          if (attempt === ATTEMPTS) throw error
          await sleep(RETRY_MS)
        }
      }
      for (const connection of open.values()) connection.refault()
    })
    return changes
  }

  function flap(next: Extract<Fault, { kind: 'flap' }>, isDown: boolean): Promise<void> {
    flapping = setTimeout(() => void flap(next, !isDown), isDown ? next.downMs : next.upMs)
    return apply(isDown ? (next.down ?? { kind: 'refuse' }) : NO_FAULT)
  }

  function set(next: Fault): Promise<void> {
    clearTimeout(flapping)
    fault = next
    return next.kind === 'flap' ? flap(next, true) : apply(next)
  }

  let port = 0
  for (let attempt = 1; server === undefined; attempt++) {
    port = FIRST_PORT + Math.floor(Math.random() * PORTS)
    try {
      server = await listen()
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
    }
  }

  return {
    url: `http://${HOST}:${port}`,
    port,
    set,
    fault: () => fault,
    connections: () => ({ accepted, open: open.size }),
    bytes: () => ({ ...traffic }),
    async close() {
      clearTimeout(flapping)
      await apply({ kind: 'refuse' })
    },
  }
}
