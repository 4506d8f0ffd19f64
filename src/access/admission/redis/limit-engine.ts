/** Port: another way to count limits, in the pipeline of an admission. */
import type { Unavailable } from '../../../errors.ts'
import type { RedisCommand, RedisConnection, RedisReply } from '../../../redis/connection.ts'
import type { LimitRequest, RateLimit, UpstashEngine } from '../limit.ts'

/** The commands of several limits. */
export interface PendingLimits {
  /** Read the counters of all limits, then count the request in each. */
  readonly commands: readonly RedisCommand[]
  /** Returns the states from the replies to {@link commands}, in the order of the limits. */
  settle(replies: readonly RedisReply[]): Promise<readonly (RateLimit | Unavailable)[]>
}

export interface PipelinedEngine extends UpstashEngine {
  /** Prepares the commands of several limits. Each limit counts independently of the others. */
  prepareLimits(limits: readonly LimitRequest[], redis: RedisConnection): PendingLimits
}
