/** The one way in which the gateway talks to Upstash Redis: an explicit pipeline, one HTTP call. */
import { errors, Redis } from '@upstash/redis/cloudflare'
import { type Fault, Unavailable } from '../../errors.ts'
import { createDeadlines } from './deadline.ts'

/** One Redis command, such as `['GET', 'key']`. */
export type RedisCommand = readonly (string | number)[]

/** Redis' answer to one command of a pipeline: exactly one of the two is set. */
export interface RedisReply {
  readonly result?: unknown
  /** Redis' own words, which may quote keys: never show or log them. */
  readonly error?: string
}

/** Port: sends commands together. */
export interface RedisRest {
  /**
   * Sends `commands` in one HTTP call and returns as many replies. Throws `Unavailable` for
   * everything that is not a well-formed answer in time.
   */
  send(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]>
}

export interface RedisRestOptions {
  readonly url: string
  readonly token: string
  /** For the whole call, its retry included; see `createDeadlines`. Default 250 ms. */
  readonly timeoutMs?: number
}

export const DEFAULT_REDIS_TIMEOUT_MS = 250
/** One retry, and only of a call that got no answer at all. */
const RETRY = { retries: 1, backoff: () => 10 }

/**
 * Makes the client. It is `@upstash/redis` without its conveniences: no guessing of types, no
 * base64, no telemetry, and not its `Pipeline` class, whose some 250 closures an instance would be
 * built anew for each request.
 */
export function createRedisRest({
  url,
  token,
  timeoutMs = DEFAULT_REDIS_TIMEOUT_MS,
}: RedisRestOptions): RedisRest {
  const client = new RestClient({
    url,
    token,
    retry: RETRY,
    responseEncoding: false,
    automaticDeserialization: false,
    enableTelemetry: false,
    enableAutoPipelining: false,
  })
  const deadlines = createDeadlines(timeoutMs)
  return {
    async send(commands) {
      const deadline = deadlines.start()
      let replies: unknown
      try {
        replies = await client.pipelined(commands, deadline.signal)
        deadline.end(true)
      } catch (cause) {
        deadline.end(false)
        throw new Unavailable('redis', faultOf(cause), { cause })
      }
      if (!isReplies(replies, commands.length)) throw new Unavailable('redis', 'malformed')
      return replies
    },
  }
}

class RestClient extends Redis {
  pipelined(commands: readonly RedisCommand[], signal: AbortSignal): Promise<unknown> {
    // Behind a function, which the client takes but its type for one request does not tell: given
    // as an object, an abort would resolve to null, which reads as "not there".
    const signalOf = (() => signal) as unknown as AbortSignal
    return this.client.request({ path: ['pipeline'], body: commands, signal: signalOf })
  }
}

function isReplies(value: unknown, length: number): value is readonly RedisReply[] {
  return Array.isArray(value) && value.length === length && value.every(isReply)
}

function isReply(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { result, error } = value as RedisReply
  return typeof error === 'string' ? result === undefined : error === undefined && 'result' in value
}

function faultOf(cause: unknown): Fault {
  if (cause instanceof errors.UpstashJSONParseError) return 'malformed'
  if (cause instanceof errors.UpstashError) return 'refused'
  const name = cause instanceof Error ? cause.name : ''
  return name === 'TimeoutError' || name === 'AbortError' ? 'timeout' : 'unreachable'
}
