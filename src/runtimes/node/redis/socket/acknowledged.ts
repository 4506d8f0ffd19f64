/** Calls whose writes replicas must have received, on a socket of their own. */
import { Unavailable } from '../../../../errors.ts'
import type { RedisCommand, RedisConnection, RedisReply } from '../../../../redis/connection.ts'

/** The part of a deadline for which Redis waits, so that its reply arrives before the deadline. */
const PART_OF_DEADLINE = 0.8

/** Returns the command that counts the replicas with all writes so far, and waits for `replicas` of them. */
const waitCommand = (replicas: number, timeoutMs: number): RedisCommand => [
  'WAIT',
  replicas,
  Math.max(1, Math.floor(timeoutMs * PART_OF_DEADLINE)),
]

/**
 * Returns a `send` that passes calls with `acknowledgedBy` to `writers`, with a `WAIT` behind their
 * commands, and all others to `requests`. `WAIT` blocks its socket, so requests need another one.
 * Too few replicas are no failure of the server: the circuit breaker does not count them.
 */
export function acknowledgedSend(
  requests: RedisConnection['send'],
  writers: RedisConnection['send'],
  timeoutMs: number,
): RedisConnection['send'] {
  async function acknowledged(
    commands: readonly RedisCommand[],
    replicas: number,
    once: boolean,
  ): Promise<readonly RedisReply[]> {
    const replies = await writers([...commands, waitCommand(replicas, timeoutMs)], { once })
    const received = replies[commands.length]?.result
    if (typeof received !== 'number' || received < replicas) {
      const cause = new Error(`${received ?? 'no'} of ${replicas} replicas have the writes`)
      throw new Unavailable('redis', 'timeout', { cause })
    }
    return replies.slice(0, commands.length)
  }
  return (commands, options) =>
    options?.acknowledgedBy
      ? acknowledged(commands, options.acknowledgedBy, options.once === true)
      : requests(commands, options)
}
