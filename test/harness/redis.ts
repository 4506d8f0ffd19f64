/** A real Redis behind the local Upstash-REST server and a proxy that counts its calls. */
import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { TestRunner } from 'vitest'
import { type RedisHandle, startRedis } from '../../dev/redis.ts'
import { startUpstashRest, type UpstashRest } from '../../dev/upstash-rest/server.ts'
import { connectResp, type RespClient } from '../../src/runtimes/node/redis/resp.ts'
import { startHttpServer } from './http-server.ts'

export interface TestRedis {
  readonly url: string
  readonly token: string
  /** A direct connection to Redis, to arrange and inspect data. */
  readonly direct: Redis
  readonly redisUrl: string
  /** The client over RESP. It connects when it is used. */
  readonly resp: RespClient
  readonly kind: RedisHandle['kind']
  /**
   * Returns the number of HTTP calls to the REST endpoint so far. Reports of metrics do not count, because
   * a gateway sends them ten seconds after a request, nor do events that a gateway on Node sends.
   */
  calls(): number
  /** As `calls`, without those that store audit events outside of a stream. */
  decisions(): number
  /**
   * Sets whether the REST endpoint answers or closes connections. Default: it answers. After the test that it
   * is called in, it answers again: a test that fails in between leaves no outage to the next one.
   */
  setAnswering(answering: boolean): void
  close(): Promise<void>
}

/**
 * Returns the gateway's variables for this Redis. The long timeout keeps a stall of the machine
 * from counting as an outage in tests that are not about deadlines.
 */
export const redisVars = ({ url, token }: Pick<TestRedis, 'url' | 'token'>, timeoutMs = 5_000) => ({
  UPSTASH_REDIS_REST_URL: url,
  UPSTASH_REDIS_REST_TOKEN: token,
  REDIS_TIMEOUT_MS: String(timeoutMs),
})

/** Keys of reports of metrics, and of the audit stream on Node. */
const BESIDE_DECISIONS = /pc:(?:metrics:report|audit:stream)/
const OVERFLOW = /pc:audit:/

/** Starts Redis, its REST server, and the counting proxy in front of them. */
export async function startTestRedis(prefer: 'auto' | 'embedded' = 'auto'): Promise<TestRedis> {
  const redis: RedisHandle = await startRedis({ prefer })
  const token = randomBytes(32).toString('base64url')
  const rest: UpstashRest = await startUpstashRest({ port: 0, token, redis })
  const direct = new Redis(redis.url)
  const resp = connectResp({ url: redis.url, timeoutMs: 5_000 })
  let calls = 0
  let decisions = 0
  let isAnswering = true
  const proxy = await startHttpServer(async (request, response) => {
    const headers = Object.entries(request.headersDistinct).filter(
      ([name]) => !['host', 'connection', 'content-length', 'transfer-encoding'].includes(name),
    ) as [string, string[]][]
    try {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = Buffer.concat(chunks)
      const text = body.toString()
      if (!BESIDE_DECISIONS.test(text)) calls += 1
      if (!BESIDE_DECISIONS.test(text) && !OVERFLOW.test(text)) decisions += 1
      if (!isAnswering) return void response.destroy()
      const answer = await fetch(new URL(request.url ?? '/', rest.url), {
        method: request.method ?? 'GET',
        headers: headers.map(([name, values]) => [name, values.join(', ')]),
        ...(body.length > 0 && { body }),
      })
      response.writeHead(answer.status, { 'content-type': 'application/json' })
      response.end(Buffer.from(await answer.arrayBuffer()))
    } catch {
      response.destroy()
    }
  })
  return {
    url: proxy.url,
    token,
    direct,
    redisUrl: redis.url,
    resp,
    kind: redis.kind,
    calls: () => calls,
    decisions: () => decisions,
    setAnswering(answering) {
      isAnswering = answering
      if (!answering)
        TestRunner.getCurrentTest()?.context.onTestFinished(() => {
          isAnswering = true
        })
    },
    async close() {
      direct.disconnect()
      resp.close()
      await proxy.close()
      await rest.close()
      await redis.close()
    },
  }
}
