/**
 * Process with the dependencies of the gateways: Redis, its REST server, and a fault proxy for each
 * gateway. So one gateway can be disconnected while the others are not.
 */
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import { startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { startUpstashRest } from '../../dev/upstash-rest/server.ts'
import { serveParent } from '../processes/child.ts'
import { startMortalRedis } from './redis.ts'
import { PROCESSES } from './terms.ts'

export interface SurroundingsReady {
  readonly redisKind: string
  readonly canKillRedis: boolean
  /** URL of the REST server itself. */
  readonly restUrl: string
  /** URLs of the fault proxies, one for each gateway. */
  readonly urls: readonly string[]
}

export type Question =
  | { readonly kind: 'fault'; readonly process: number; readonly fault: Fault }
  | { readonly kind: 'kill-redis' }
  | { readonly kind: 'start-redis'; readonly keepsData: boolean }

const { REST_TOKEN = '', DIRECTORY = '', SEED = '1' } = process.env
const redis = await startMortalRedis(DIRECTORY)
const rest = await startUpstashRest({ port: 0, token: REST_TOKEN, redis })
const { hostname: host, port } = new URL(rest.url)
const proxies = await Promise.all(
  Array.from({ length: PROCESSES }, (_, index) =>
    startFaultProxy({ target: { host, port: Number(port) }, seed: Number(SEED) + index }),
  ),
)
process.on('disconnect', () => void redis.close())

serveParent(
  {
    redisKind: redis.kind,
    canKillRedis: redis.kill !== undefined,
    restUrl: rest.url,
    urls: proxies.map(({ url }) => url),
  } satisfies SurroundingsReady,
  async (question: Question) => {
    if (question.kind === 'fault') await proxies[question.process]?.set(question.fault)
    else if (question.kind === 'kill-redis') await redis.kill?.()
    else await redis.start(question.keepsData)
  },
)
