/** The one way in which the gateway talks to Upstash Redis: an explicit pipeline, one HTTP call. */
import { errors, Redis } from '@upstash/redis/cloudflare'
import type { CircuitBreaker } from '../../breakers/breaker.ts'
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
   * everything that is not a well-formed answer in time. A call that got no answer is sent a second
   * time, unless it is to be sent `once` because the repetition would be mistaken for another.
   */
  send(
    commands: readonly RedisCommand[],
    options?: { readonly once?: boolean },
  ): Promise<readonly RedisReply[]>
}

export interface RedisRestOptions {
  readonly url: string
  readonly token: string
  /** For the whole call, its retry included; see `createDeadlines`. Default 250 ms. */
  readonly timeoutMs?: number | undefined
  /** Refuses calls while Redis is down. Default none. */
  readonly breaker?: Pick<CircuitBreaker, 'enter' | 'succeeded' | 'failed'> | undefined
  /** Told the outcome of each call that was made; must not throw. */
  readonly onCall?: ((outcome: 'answered' | Fault) => void) | undefined
}

export const DEFAULT_REDIS_TIMEOUT_MS = 250
/** One retry, and only of a call that got no answer at all. */
const RETRY = { retries: 1, backoff: () => 10 }
const ONCE = { once: true }

/**
 * Makes the client. It is `@upstash/redis` without its conveniences: no guessing of types, no
 * base64, no telemetry, and not its `Pipeline` class, whose some 250 closures an instance would be
 * built anew for each request.
 *
 * With a breaker a call may be refused unasked. What fails a call as a whole (no answer, none in
 * time, none that can be read, an error status) counts against Redis. What an answer says of a single
 * command does not, nor does a deadline that passed while this isolate stood still: one with too
 * much to do must not take itself for an outage.
 */
export function createRedisRest({
  url,
  token,
  timeoutMs = DEFAULT_REDIS_TIMEOUT_MS,
  breaker,
  onCall,
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
    async send(commands, { once } = {}) {
      const entry = breaker?.enter() ?? 0
      const deadline = deadlines.start()
      let replies: unknown
      try {
        replies = await client.pipelined(commands, deadline.signal, once)
        deadline.end(true)
      } catch (cause) {
        const fault = faultOf(cause)
        const isEvidence = deadline.end(false) || fault !== 'timeout'
        if (isEvidence) breaker?.failed(entry, fault)
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

/** The same client, for commands that mean something else the second time, such as `SET NX`. */
export const sentOnce = (rest: RedisRest): RedisRest => ({
  send: (commands) => rest.send(commands, ONCE),
})

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
    // Behind a function, which the client takes but its type for one request does not tell: given
    // as an object, an abort would resolve to null, which reads as "not there".
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
