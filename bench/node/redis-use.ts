/** Reads what the requests of each contestant cost in Redis itself. */
import type { Contestant } from '../measure/rounds.ts'
import { rounded } from '../measure/statistics.ts'
import type { DirectRedis } from '../relations/direct-redis.ts'

/** One round. Warm-up rounds are not included. */
export interface RedisUse {
  /** Scripts per response. */
  readonly scripts: number
  /** CPU time of Redis' main thread per response, with reading and replying. */
  readonly cpuMicros: number
  /** Time of one script. 0: none ran. */
  readonly scriptMicros: number
}

/** Maximum share of scripts for aborted and repeated requests. */
const STRAYS = 0.1

/**
 * Returns the contestant with readings before and after each round, which are added to `uses`. A
 * round fails if it ran another number of scripts per response than `scripts`; undefined: any.
 */
export function withRedisUse(
  contestant: Contestant,
  redis: Pick<DirectRedis, 'usage'>,
  uses: RedisUse[],
  scripts: number | undefined,
): Contestant {
  let before = { calls: 0, micros: 0, cpuMicros: 0 }
  return {
    ...contestant,
    async prepare() {
      before = await redis.usage()
      return contestant.questions
    },
    async check({ requests }) {
      const after = await redis.usage()
      const calls = after.calls - before.calls
      const each = calls / requests
      if (scripts !== undefined && !(each >= scripts && each <= scripts + STRAYS))
        throw new Error(`${contestant.title}: ${each.toFixed(2)} scripts for one response`)
      uses.push({
        scripts: rounded(each, 3),
        cpuMicros: rounded((after.cpuMicros - before.cpuMicros) / requests, 2),
        scriptMicros: calls === 0 ? 0 : rounded((after.micros - before.micros) / calls, 2),
      })
    },
  }
}
