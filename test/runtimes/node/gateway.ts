/** A gateway process on Node, over a real Redis, and an origin that records its requests. */
import type { IncomingMessage, RequestListener } from 'node:http'
import { startHttpServer } from '../../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint, type TokenOptions } from '../../harness/issuer.ts'
import { ROOT, type Running, run } from '../../harness/process.ts'
import { redisVars, startTestRedis } from '../../harness/redis.ts'

const NODE = `${ROOT}/node_modules/node/bin/node`

export interface NodeProcess {
  readonly url: string
  readonly running: Running
}

export type NodeGateway = Awaited<ReturnType<typeof startNodeGateway>>

/** `answer` handles the requests that reach the origin. Default: an empty list. Redis is reached `over` RESP. */
export async function startNodeGateway(
  variables: Readonly<Record<string, string>> = {},
  answer: RequestListener = (request, response) => {
    request.resume().on('end', () => response.end('[]'))
  },
  over: 'resp' | 'rest' = 'resp',
) {
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const reached: IncomingMessage[] = []
  const origin = await startHttpServer((request, response) => {
    reached.push(request)
    return answer(request, response)
  })
  const key = await createKey('idp')
  const issuers = [{ issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } }]
  const environment = {
    ...(over === 'rest'
      ? redisVars(redis)
      : { REDIS_URL: redis.redisUrl, REDIS_TIMEOUT_MS: '5000' }),
    PUBLIC_URL: 'https://gateway.test',
    ORIGIN_URL: origin.url,
    ISSUERS: JSON.stringify(issuers),
    ...variables,
  }
  const started: NodeProcess[] = []
  /** Starts another process over the same Redis and origin. */
  async function another(): Promise<NodeProcess> {
    const running = await run(
      [NODE, 'test/runtimes/node/process.ts'],
      environment,
      /ready on \S+\n/,
    )
    const url = /ready on (\S+)/.exec(running.output())?.[1] ?? ''
    started.push({ url, running })
    return { url, running }
  }
  const { url, running } = await another()
  return {
    url,
    port: Number(new URL(url).port),
    running,
    another,
    redis,
    reached,
    token: (options: TokenOptions = {}) => mint(key, options),
    async close() {
      await Promise.all(started.map((process) => process.running.stop()))
      await origin.close()
      await redis.close()
    },
  }
}
