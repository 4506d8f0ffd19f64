/** Any Redis for apps on Node: `import { redis } from 'portcullis/redis'`. */
import * as z from 'zod/mini'
import { createLaneAdmissionStore } from '../../../access/admission/redis/lane-store.ts'
import { Misconfigured } from '../../../errors.ts'
import {
  boundedCalls,
  DEFAULT_REDIS_TIMEOUT_MS,
  type RedisCallOptions,
} from '../../../redis/bounded-calls.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { createKeys, DEFAULT_KEY_PREFIX } from '../../../redis/keys.ts'
import { parseConfiguration } from '../../../validators/configuration.ts'
import { wholeNumber } from '../../../validators/schema-parts.ts'
import {
  MAX_TIMEOUT_MS,
  MIN_TIMEOUT_MS,
  keyPrefix as prefixOfKeys,
} from '../../../validators/variables.ts'
import { MAX_FENCE_MS, MAX_REPLICAS, MIN_FENCE_MS } from '../environment/redis-environment.ts'
import { findUrlMistake } from '../environment/redis-url.ts'
import { inexactLimits } from './exact-limits.ts'
import { type ExistingClient, sendThrough } from './existing-client.ts'
import { connectResp } from './resp.ts'

export type { ExistingClient }

export interface RedisSettings {
  /** `REDIS_PREFIX`: the beginning of the names of all keys, such as `pc-staging:`. Default: `DEFAULT_KEY_PREFIX`. */
  readonly keyPrefix?: string
  /** `REDIS_TIMEOUT_MS`: the deadline of a call, its retry included. Default 250, from 10 to 5,000. */
  readonly timeoutMs?: number
  /** `REDIS_FENCE_MS`: the longest silence of a master with Sentinels or in a cluster. Default 800, from 400 to 60,000. */
  readonly fenceMs?: number
  /** `REDIS_REPLICAS_ACKED`: so many replicas must have a revocation. Default: 1 on a cluster, else 0. At most 5. */
  readonly replicasAcked?: number
  /** `REDIS_EVICTION=accepted`: a cluster may evict keys, revocations too. Default false: it is not used. */
  readonly acceptsEviction?: boolean
}

/** Without it, a text or NaN would be no deadline, or no replica. */
const settingsSchema = z.strictObject({
  keyPrefix: z.optional(prefixOfKeys),
  timeoutMs: z.optional(wholeNumber(MIN_TIMEOUT_MS, MAX_TIMEOUT_MS)),
  fenceMs: z.optional(wholeNumber(MIN_FENCE_MS, MAX_FENCE_MS)),
  replicasAcked: z.optional(wholeNumber(0, MAX_REPLICAS)),
  acceptsEviction: z.optional(z.boolean()),
})

/** A Redis for the option `redis` of `portcullis()`. Each guard has its own circuit breaker and deadline. */
export interface AppRedis extends RedisConnection {
  /** Creates a connection with its own deadline, circuit breaker and observer. */
  connect(options: RedisCallOptions): RedisConnection
  /** Creates the store of admission, over the lanes of a cluster if there are any. */
  readonly admissionStore: typeof createLaneAdmissionStore
  /** Returns a mistake for each limit that this Redis cannot count, as on a cluster those with `upstash()`. */
  readonly mistakesIn: typeof inexactLimits
  /** Closes the socket that `redis()` has opened. A client of the app stays open. */
  close(): void
}

/**
 * Connects a guard with a Redis server. With a URL, `redis://host:port`, `rediss://…` with TLS,
 * `redis+sentinel://…` or `redis+cluster://…`, it opens its sockets when the first request needs them. Each call has a deadline, and a
 * circuit breaker refuses calls while Redis is down: the guard answers 503.
 *
 * Also takes a client of ioredis or node-redis, if it sends each command at most once and at once. Throws
 * `Misconfigured` for an invalid URL or setting, and for a client with a key prefix, reads from replicas, an offline queue,
 * automatic resend, RESP3, or a cluster: each would miss revocations or count a request twice. Does NOT check the
 * server behind such a client.
 *
 * @example
 * ```ts
 * const guard = portcullis({ issuers, redis: redis('redis://127.0.0.1:6379'), roles })
 * ```
 */
export function redis(server: string | ExistingClient, settings: RedisSettings = {}): AppRedis {
  parseConfiguration('The options of redis()', settingsSchema, settings)
  const { keyPrefix = DEFAULT_KEY_PREFIX, timeoutMs = DEFAULT_REDIS_TIMEOUT_MS } = settings
  if (typeof server === 'string') {
    const mistake = findUrlMistake(server)
    if (mistake !== undefined) throw misconfigured(mistake)
    const { connect, close } = connectResp({
      ...settings,
      ...{ url: server, keyPrefix, timeoutMs, completesFacts: true },
    })
    return whole((calls) => connect({ timeoutMs, ...calls }), close)
  }
  const { send, classifyFault } = sendThrough(server, misconfigured)
  const keys = createKeys(keyPrefix)
  return whole(
    (calls) => ({
      keys,
      keyLocking: false,
      send: boundedCalls({ timeoutMs, ...calls }, send, classifyFault),
    }),
    () => {},
  )
}

function whole(connect: AppRedis['connect'], close: () => void): AppRedis {
  const connection = connect({})
  return {
    ...connection,
    connect,
    admissionStore: createLaneAdmissionStore,
    mistakesIn: (limits) => (connection.lanes === undefined ? [] : inexactLimits(limits)),
    close,
  }
}

const misconfigured = (mistake: string): Misconfigured =>
  new Misconfigured('The Redis', [`redis(): ${mistake}`])
