/** A real Redis behind the local Upstash-REST server, which counts its calls. */
import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { TestRunner } from 'vitest'
import { type RedisHandle, startRedis } from '../../dev/redis.ts'
import { startUpstashRest, type UpstashRest } from '../../dev/upstash-rest/server.ts'
import { connectResp, type RespClient } from '../../src/runtimes/node/redis/resp.ts'

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
   * Sets whether the REST endpoint answers or closes connections; with a function, which commands it answers, as
   * JSON. Default: it answers. After the test that it is called in, it answers again: a test that fails in between
   * leaves no outage to the next one.
   */
  setAnswering(answering: boolean | ((commands: string) => boolean)): void
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

/** Starts Redis and its REST server. `onCall` gets the commands of each call that `calls` counts, as JSON. */
export async function startTestRedis(
  prefer: 'auto' | 'embedded' = 'auto',
  onCall: (commands: string) => void = () => {},
): Promise<TestRedis> {
  const redis: RedisHandle = await startRedis({ prefer })
  const token = randomBytes(32).toString('base64url')
  const direct = new Redis(redis.url)
  const resp = connectResp({ url: redis.url, timeoutMs: 5_000 })
  let calls = 0
  let decisions = 0
  let isAnswering: (commands: string) => boolean = () => true
  const rest: UpstashRest = await startUpstashRest({
    ...{ port: 0, token, redis },
    accepts(body) {
      const text = body.toString()
      if (BESIDE_DECISIONS.test(text)) return isAnswering(text)
      calls += 1
      if (!OVERFLOW.test(text)) decisions += 1
      onCall(text)
      return isAnswering(text)
    },
  })
  return {
    url: rest.url,
    token,
    direct,
    redisUrl: redis.url,
    resp,
    kind: redis.kind,
    calls: () => calls,
    decisions: () => decisions,
    setAnswering(answering) {
      isAnswering = typeof answering === 'function' ? answering : () => answering
      if (answering !== true)
        TestRunner.getCurrentTest()?.context.onTestFinished(() => {
          isAnswering = () => true
        })
    },
    async close() {
      direct.disconnect()
      resp.close()
      await rest.close()
      await redis.close()
    },
  }
}
