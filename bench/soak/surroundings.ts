/**
 * Process with the surroundings of the gateways: an origin that records its requests, an issuer's
 * key set, Redis behind its REST server, and a fault proxy for each.
 */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type FaultProxy, startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { startRedis } from '../../dev/redis.ts'
import { HOST } from '../../dev/start/settings.ts'
import { startUpstashRest } from '../../dev/upstash-rest/server.ts'
import { serveParent } from '../processes/child.ts'
import type { Proxied } from './faults.ts'
import { type Arrival, NUMBER_HEADER, type Question, type SurroundingsReady } from './protocol.ts'

/** Longer than any pause, so that no socket is closed when it is about to be used. */
const KEEP_ALIVE_MS = 120_000

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener)
  server.keepAliveTimeout = KEEP_ALIVE_MS
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve))
  return (server.address() as AddressInfo).port
}

let arrivals: Arrival[] = []

const originPort = await listen(async (request, response) => {
  const number = Number(request.headers[NUMBER_HEADER] ?? -1)
  const subject = decodeURIComponent(String(request.headers['x-auth-subject'] ?? ''))
  arrivals.push([number, subject, request.method ?? '', Date.now()])
  let bytes = 0
  for await (const chunk of request) bytes += (chunk as Buffer).length
  response.setHeader('Content-Type', 'application/json')
  response.end(JSON.stringify({ number, subject, bytes, filler: 'x'.repeat(300) }))
})
const keySetPort = await listen((_, response) => {
  response.setHeader('Content-Type', 'application/json').end(process.env.KEY_SET)
})
const redis = await startRedis()
const rest = await startUpstashRest({ port: 0, token: process.env.REST_TOKEN ?? '', redis })
process.on('disconnect', () => void rest.close().then(() => redis.close()))

const seed = Number(process.env.SEED)
const proxyTo = (port: number, offset: number): Promise<FaultProxy> =>
  startFaultProxy({ target: { host: HOST, port }, seed: seed + offset })
const proxies: Readonly<Record<Proxied, FaultProxy>> = {
  redis: await proxyTo(Number(new URL(rest.url).port), 0),
  keySet: await proxyTo(keySetPort, 1),
  origin: await proxyTo(originPort, 2),
}

serveParent(
  {
    redisKind: redis.kind,
    urls: {
      redis: proxies.redis.url,
      keySet: proxies.keySet.url,
      origin: proxies.origin.url,
    },
  } satisfies SurroundingsReady,
  async (question: Question) => {
    if (question.kind === 'fault') return proxies[question.at].set(question.fault)
    const taken = arrivals
    arrivals = []
    return taken
  },
)
