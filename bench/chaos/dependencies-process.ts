/** Process with Redis, its REST server, and a fault proxy for each target. */
import { startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { startRedis } from '../../dev/redis.ts'
import { HOST } from '../../dev/start/settings.ts'
import { startUpstashRest } from '../../dev/upstash-rest/server.ts'
import { serveParent } from '../processes/child.ts'
import type { ProxyTarget, Question, Ready } from './dependencies.ts'
import { type MortalRedis, startMortalRedis } from './redis.ts'

const { REST_TOKEN = '', DIRECTORY = '', SEED = '1', TARGETS = '[]' } = process.env
const redis: MortalRedis =
  DIRECTORY === ''
    ? { ...(await startRedis()), kill: undefined, start: async () => {} }
    : await startMortalRedis(DIRECTORY)
const rest = await startUpstashRest({ port: 0, token: REST_TOKEN, redis })
const portOf = (url: string) => Number(new URL(url).port)
const ports = { redis: portOf(rest.url), resp: portOf(redis.url) }
const proxies = await Promise.all(
  (JSON.parse(TARGETS) as readonly ProxyTarget[]).map((target, index) =>
    startFaultProxy({
      target: { host: HOST, port: typeof target === 'number' ? target : ports[target] },
      seed: Number(SEED) + index,
    }),
  ),
)

serveParent(
  {
    redisKind: redis.kind,
    canKillRedis: redis.kill !== undefined,
    restUrl: rest.url,
    urls: proxies.map(({ url }) => url),
  } satisfies Ready,
  async (question: Question) => {
    if (question.kind === 'fault') await proxies[question.proxy]?.set(question.fault)
    else if (question.kind === 'kill-redis') await redis.kill?.()
    else await redis.start(question.keepsData)
  },
  async () => {
    await rest.close()
    await redis.close()
  },
)
