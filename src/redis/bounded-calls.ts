/** What every call to Redis has, over any protocol: a deadline, a circuit breaker and an observer. */
import { Unavailable } from '../errors.ts'
import type { CircuitBreaker } from '../isolate/circuit-breaker.ts'
import { createDeadlines, type Deadline } from '../isolate/deadline.ts'
import type { Fault } from '../problems/reasons.ts'
import type { RedisCommand, RedisConnection, RedisReply, SendOptions } from './connection.ts'

export interface RedisCallOptions {
  /** Deadline of the whole call, its retry included; see `createDeadlines`. Default 250 ms. */
  readonly timeoutMs?: number | undefined
  /** Refuses calls while Redis is down. Default: no circuit breaker. */
  readonly breaker?: Pick<CircuitBreaker, 'enter' | 'succeeded' | 'failed'> | undefined
  /** Of one master of a cluster; `target` is its address. Default: `breaker` for all of them. */
  readonly breakerOf?: ((target: string) => RedisCallOptions['breaker']) | undefined
  /** Receives the outcome of each call that was sent. Must not throw. */
  readonly onCall?: ((outcome: 'answered' | Fault) => void) | undefined
}

/**
 * Sends commands and returns their replies. Throws when the deadline expires.
 */
export type SendCall = (
  commands: readonly RedisCommand[],
  deadline: Deadline,
  options: SendOptions,
) => Promise<unknown>

export const DEFAULT_REDIS_TIMEOUT_MS = 250

const NO_OPTIONS: SendOptions = {}

/**
 * Creates the `send` of a connection. `faultOf` classifies what `sendCall` throws.
 *
 * With a circuit breaker, a call may be short-circuited. A call that fails as a whole counts as a
 * failure of Redis: no response, a timeout, an unreadable response or an error status. An error of
 * a single command in a good response does not count.
 */
export function boundedCalls(
  { timeoutMs = DEFAULT_REDIS_TIMEOUT_MS, breaker, onCall }: RedisCallOptions,
  sendCall: SendCall,
  faultOf: (cause: unknown) => Fault,
): RedisConnection['send'] {
  const deadlines = createDeadlines(timeoutMs)
  return async (commands, options = NO_OPTIONS) => {
    const entry = breaker?.enter() ?? 0
    const deadline = deadlines.start()
    let replies: unknown
    try {
      replies = await sendCall(commands, deadline, options)
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
