/** The client for Upstash Redis: each call is one explicit pipeline in one HTTP request. */
import { errors, Redis } from '@upstash/redis/cloudflare'
import { Unavailable } from '../errors.ts'
import type { CircuitBreaker } from '../isolate/circuit-breaker.ts'
import { createDeadlines } from '../isolate/deadline.ts'
import type { Fault } from '../problems/reasons.ts'
import type { RedisCommand, RedisConnection, RedisReply } from './connection.ts'
import { createKeys, DEFAULT_KEY_PREFIX } from './keys.ts'

export interface RedisRestOptions {
  readonly url: string
  readonly token: string
  /** The beginning of all names of keys. Default: `DEFAULT_KEY_PREFIX`. */
  readonly keyPrefix?: string | undefined
  /** Deadline of the whole call, its retry included; see `createDeadlines`. Default 250 ms. */
  readonly timeoutMs?: number | undefined
  /** Refuses calls while Redis is down. Default: no circuit breaker. */
  readonly breaker?: Pick<CircuitBreaker, 'enter' | 'succeeded' | 'failed'> | undefined
  /** Receives the outcome of each call that was sent. Must not throw. */
  readonly onCall?: ((outcome: 'answered' | Fault) => void) | undefined
}

export const DEFAULT_REDIS_TIMEOUT_MS = 250
/** One retry, only for a call without any response. */
const RETRY = { retries: 1, backoff: () => 10 }

/**
 * Creates the client. It uses `@upstash/redis` without its conveniences: no type conversion, no
 * base64, no telemetry. It does not use the `Pipeline` class of the library, because each instance
 * creates some 250 closures, once for every request.
 *
 * With a circuit breaker, a call may be short-circuited. A call that fails as a whole counts as a
 * failure of Redis: no response, a timeout, an unreadable response or an error status. An error of
 * a single command in a good response does not count.
 */
export function createRedisRest({
  url,
  token,
  keyPrefix = DEFAULT_KEY_PREFIX,
  timeoutMs = DEFAULT_REDIS_TIMEOUT_MS,
  breaker,
  onCall,
}: RedisRestOptions): RedisConnection {
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
    server: url,
    keys: createKeys(keyPrefix),
    async send(commands, { once } = {}) {
      const entry = breaker?.enter() ?? 0
      const deadline = deadlines.start()
      let replies: unknown
      try {
        replies = await client.pipelined(commands, deadline.signal, once)
        deadline.end(true)
      } catch (cause) {
        deadline.end(false)
        const fault = faultOf(cause)
        breaker?.failed(entry, fault)
        onCall?.(fault)
        throw new Unavailable('redis', fault, { cause })
      }
      if (!isReplies(replies, commands.length)) {
        breaker?.failed(entry, 'malformed')
        onCall?.('malformed')
        throw new Unavailable('redis', 'malformed')
      }
      breaker?.succeeded()
      onCall?.('answered')
      return replies
    },
  }
}

class RestClient extends Redis {
  /** The same connection settings and sync token, without the retry. */
  private readonly single: typeof this.client = Object.create(this.client, {
    retry: { value: { attempts: 0 } },
    upstashSyncToken: {
      get: () => this.client.upstashSyncToken,
      set: (syncToken: string) => {
        this.client.upstashSyncToken = syncToken
      },
    },
  })

  pipelined(
    commands: readonly RedisCommand[],
    signal: AbortSignal,
    once: boolean | undefined,
  ): Promise<unknown> {
    // The signal is passed as a function, which the client accepts although its type for one
    // request does not declare it. With a plain signal, an abort resolves to null, which reads as
    // "no value".
    const signalOf = (() => signal) as unknown as AbortSignal
    const client = once ? this.single : this.client
    return client.request({ path: ['pipeline'], body: commands, signal: signalOf })
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
