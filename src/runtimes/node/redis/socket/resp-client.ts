/** What the clients of one server, of Sentinels and of a cluster have in common. */
import type { Mistake } from '../../../../problems/mistake.ts'
import { mistakeAt } from '../../../../problems/mistake.ts'
import type { RedisCallOptions } from '../../../../redis/bounded-calls.ts'
import type { RedisConnection } from '../../../../redis/connection.ts'

export interface RespOptions {
  /** See `parseRedisUrl`. */
  readonly url: string
  /** The beginning of all names of keys. Default: `DEFAULT_KEY_PREFIX`. */
  readonly keyPrefix?: string | undefined
  /** The deadline of calls for requests, in milliseconds. Default 250. */
  readonly timeoutMs?: number | undefined
  /** Whether calls decide no request, so that their deadline may be longer than the node timeout. Default false. */
  readonly isBackground?: boolean | undefined
  /**
   * A master with Sentinels or in a cluster that was silent for longer, in milliseconds, must prove that
   * it is still the master. Default 800.
   */
  readonly fenceMs?: number | undefined
  /** `RedisConnection.replicasAcked`. Default: 1 on a cluster, else 0. */
  readonly replicasAcked?: number | undefined
  /** Whether a cluster may evict keys, revocations too. Default false. */
  readonly acceptsEviction?: boolean | undefined
  /** Whether the client completes revocations that processes have left (`Broadcast`). Default false: a gateway does. */
  readonly completesFacts?: boolean | undefined
}

export interface RespClient {
  /** Creates a connection with its own deadline, circuit breaker and observer. */
  connect(options: RedisCallOptions): RedisConnection
  /**
   * Returns warnings. Throws `Misconfigured` if the gateway cannot use this Redis: a replica, an old
   * version, a wrong password or database, or settings of a cluster that lose revocations. Returns none
   * if Redis does not respond, because that may change.
   */
  check(): Promise<readonly string[]>
  /** Returns the state of each known master of a cluster, by address. Empty without a cluster. */
  masters(): ReadonlyMap<string, ServerState>
  /** Returns how often a replica of a cluster was seen to have become a master. 0 without a cluster. */
  promotions(): number
  /** Returns how many revocations and bans are not in all lanes of a cluster yet. Undefined without a cluster. */
  pendingFacts(): Promise<number | undefined>
  /**
   * Returns what an operator must correct at a cluster, such as a setting that loses revocations: what `check`
   * has not seen because a master was away, and what came later. Empty without a cluster.
   */
  problems(): readonly string[]
  /** Closes all sockets. Calls in progress fail, as do later calls. */
  close(): void
}

/** What metrics show of a server, since this process began to use it. */
export interface ServerState {
  readonly isBelieved: boolean
  /** Calls with replies that were used. */
  readonly answered: number
  /** Calls without a reply. One whose reply came after its deadline has one. */
  readonly failed: number
  /** Calls whose replies came after a silence, or that were not sent because the server was not believed. */
  readonly doubted: number
  /** How often the server was no longer believed: a silence was too long, or a socket was lost. */
  readonly fenced: number
  /** Answered calls by their duration: for each of `BUCKETS_MS`, and longer ones. */
  readonly durations: readonly number[]
  /** Sum of these durations in milliseconds. */
  readonly sumMs: number
}

export const DEFAULT_FENCE_MS = 800

/** Returns a mistake in `REDIS_URL`, or in the variable `name`. */
export const redisMistake = (message: string, name = 'REDIS_URL'): Mistake =>
  mistakeAt('invalid_value', [name], message)
