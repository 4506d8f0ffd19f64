/** The dependencies of the gateways: a process with Redis and fault proxies, and an origin. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import { HOST } from '../../dev/start/settings.ts'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import { startChild } from '../processes/child.ts'

const SECRET_BYTES = 32
/** Longer than any pause, so that no socket is closed when it is about to be used. */
export const KEEP_ALIVE_MS = 120_000
/** Path to which workerd posts batches of queue messages, and its expected response. */
export const QUEUE_PATH = '/batch'
export const QUEUE_BODY = JSON.stringify({
  metadata: { metrics: { backlogCount: 0, backlogBytes: 0, oldestMessageTimestamp: 0 } },
})

export const NUMBER_HEADER = 'x-chaos-number'

/** A target of a fault proxy: the REST server of Redis, Redis itself, or a port. */
export type ProxyTarget = 'redis' | 'resp' | number

export interface Ready {
  readonly redisKind: string
  readonly canKillRedis: boolean
  /** URL of the REST server itself. */
  readonly restUrl: string
  /** URLs of the fault proxies, in the order of their targets. */
  readonly urls: readonly string[]
}

export type Question =
  | { readonly kind: 'fault'; readonly proxy: number; readonly fault: Fault }
  | { readonly kind: 'kill-redis' }
  | { readonly kind: 'start-redis'; readonly keepsData: boolean }

export interface Dependencies extends Ready {
  readonly restToken: string
  setFault(proxy: number, fault: Fault): Promise<void>
  killRedis(): Promise<void>
  startRedis(keepsData: boolean): Promise<void>
}

export interface DependencyOptions {
  readonly seed: number
  readonly targets: readonly ProxyTarget[]
  /** Directory for the data of a Redis that can be killed. Undefined: it cannot be killed. */
  readonly directory?: string
}

/** Starts the process. It ends at shutdown. */
export async function startDependencies(
  { seed, targets, directory = '' }: DependencyOptions,
  shutdown: Pick<Shutdown, 'defer'>,
): Promise<Dependencies> {
  const restToken = randomBytes(SECRET_BYTES).toString('base64url')
  const child = await startChild<Ready>(join(import.meta.dirname, 'dependencies-process.ts'), {
    REST_TOKEN: restToken,
    DIRECTORY: directory,
    SEED: String(seed),
    TARGETS: JSON.stringify(targets),
  })
  shutdown.defer(child.close)
  const call = (question: Question) => child.call<void>(question)
  return {
    ...child.ready,
    restToken,
    setFault: (proxy, fault) => call({ kind: 'fault', proxy, fault }),
    killRedis: () => call({ kind: 'kill-redis' }),
    startRedis: (keepsData) => call({ kind: 'start-redis', keepsData }),
  }
}

/** Starts a server in this process. It ends at shutdown. Returns its port. */
export async function listen(
  listener: RequestListener,
  shutdown: Pick<Shutdown, 'defer'>,
): Promise<number> {
  const server = createServer(listener)
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.listen(0, HOST)
  await once(server, 'listening')
  shutdown.defer(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return (server.address() as AddressInfo).port
}

export interface Arrival {
  /** The number of the request; NaN: it has none. */
  readonly number: number
  /** The subject that the gateway sent; empty: none. */
  readonly subject: string
  readonly method: string
}

/**
 * Starts an origin in the process of its clients, so that both use one clock. Calls `onArrival` when
 * a request arrives, and answers with `body`. Also receives the batches of the audit queue.
 */
export function startOrigin(
  onArrival: (arrival: Arrival) => void,
  body: string,
  shutdown: Pick<Shutdown, 'defer'>,
): Promise<number> {
  return listen((request, response) => {
    const { url, method = '', headers } = request
    const isBatch = url === QUEUE_PATH
    if (!isBatch) {
      const number = Number(headers[NUMBER_HEADER] ?? Number.NaN)
      const subject = decodeURIComponent(String(headers['x-auth-subject'] ?? ''))
      onArrival({ number, subject, method })
    }
    request.resume()
    response.setHeader('Content-Type', 'application/json')
    // A request with an incomplete body has no response.
    request.on('end', () => response.end(isBatch ? QUEUE_BODY : body))
  }, shutdown)
}
