/** `@upstash/ratelimit`'s sliding window, asked inside somebody else's pipeline. */
import { Ratelimit } from '@upstash/ratelimit'
import type { LimitRequest, LimitRule, RateLimit } from '../../admission/limit.ts'
import { nextAdmissionMs } from '../../admission/window.ts'
import { Unavailable } from '../../errors.ts'
import { counterName, overridePrefix } from './limit-overrides.ts'
import type { RedisCommand, RedisReply, RedisRest } from './rest.ts'
import { resultOf } from './result.ts'

type Window = ReturnType<ReturnType<typeof Ratelimit.slidingWindow>>
type WindowRedis = Parameters<Window['limit']>[0]['redis']

/** The limiter's own client is never used beyond these two calls. */
interface ScriptRunner {
  evalsha(sha: string, keys: readonly string[], args: readonly unknown[]): Promise<unknown>
  eval(script: string, keys: readonly string[], args: readonly unknown[]): Promise<unknown>
}

/** A limit that has been asked and whose command waits to be sent. */
interface PendingLimit {
  /** Counts the request; stands in the pipeline. */
  readonly command: RedisCommand
  /** The current and the previous counter, for {@link settle}. */
  readonly counters: readonly [current: string, previous: string]
  /** Turns Redis' reply, and the counters as they were before it, into the limit's state. */
  settle(reply: RedisReply, before: readonly [number, number]): Promise<RateLimit | Unavailable>
}

/** What the script says of a request beyond the limit. */
const REFUSED = -1

const windows = new WeakMap<LimitRule, Window>()

function windowOf(rule: LimitRule): Window {
  let window = windows.get(rule)
  if (window === undefined) {
    window = Ratelimit.slidingWindow(rule.limit, `${rule.windowSeconds} s`)()
    windows.set(rule, window)
  }
  return window
}

/**
 * Asks one limit, or the one that an operator has set in its place. The limiter issues its
 * `EVALSHA` before it first waits, so the command is known as soon as this returns; nothing depends
 * on counting microtasks. A script that Redis does not know (`NOSCRIPT`, after a fail-over) is sent
 * in full, once, in a call of its own.
 */
function askLimit({ rule, key }: LimitRequest, rest: RedisRest): PendingLimit {
  const windowMs = rule.windowSeconds * 1000
  const reply = Promise.withResolvers<unknown>()
  let asked: { keys: readonly string[]; command: RedisCommand } | undefined
  const runner: ScriptRunner = {
    evalsha(sha, keys, args) {
      asked = { keys, command: ['EVALSHA', sha, keys.length, ...keys, ...args.map(asArgument)] }
      return reply.promise
    },
    async eval(script, keys, args) {
      const [answer] = await rest.send([
        ['EVAL', script, keys.length, ...keys, ...args.map(asArgument)],
      ])
      return countedOf(answer)
    },
  }
  const state = windowOf(rule).limit(
    {
      redis: runner as unknown as WindowRedis,
      prefix: overridePrefix(key),
      dynamicLimits: true,
    },
    counterName(key),
  )
  const [current, previous] = asked?.keys ?? []
  if (asked === undefined || current === undefined || previous === undefined)
    throw new Error('sliding window: the limiter did not ask at once')
  // The window's own failure is reported by settle(); nobody else may see it as unhandled.
  state.catch(() => undefined)

  return {
    command: asked.command,
    counters: [current, previous],
    async settle(answer, [countedNow, countedBefore]) {
      try {
        reply.resolve(countedOf(answer))
      } catch (error) {
        reply.reject(error)
      }
      try {
        const { success, limit, remaining, reset } = await state
        const counts = { current: countedNow, previous: countedBefore, limit, windowMs }
        const resetMs = success ? reset : nextAdmissionMs(counts, Date.now())
        return { rule, limit, remaining: success ? remaining : 0, resetMs, admitted: success }
      } catch (cause) {
        return cause instanceof Unavailable ? cause : new Unavailable('redis', 'refused', { cause })
      }
    },
  }
}

/** Limits that have been asked together. */
export interface PendingLimits {
  /** Read their counters, and count the request in each. */
  readonly commands: readonly RedisCommand[]
  /** Turns the replies to {@link commands} into states, in the order of the limits. */
  settle(replies: readonly RedisReply[]): Promise<readonly (RateLimit | Unavailable)[]>
}

/** Asks several limits. Each counts by itself, whatever the others say. */
export function askLimits(limits: readonly LimitRequest[], rest: RedisRest): PendingLimits {
  const pending = limits.map((limit) => askLimit(limit, rest))
  const counters = pending.flatMap((limit) => limit.counters)
  return {
    commands: [['MGET', ...counters], ...pending.map(({ command }) => command)],
    settle([values, ...counted]) {
      const before = resultOf(values)
      if (!Array.isArray(before) || before.length !== counters.length)
        throw new Unavailable('redis', 'malformed')
      const countAt = (index: number) => Number(before[index] ?? 0)
      return Promise.all(
        pending.map((limit, index) =>
          limit.settle(counted[index] ?? {}, [countAt(2 * index), countAt(2 * index + 1)]),
        ),
      )
    },
  }
}

function asArgument(value: unknown): string | number {
  return typeof value === 'number' ? value : String(value)
}

/**
 * What the limiter's script returns: requests left, -1 for one that was refused, and the limit. The
 * limiter takes anything that is not below zero for an admission, null as well.
 */
function countedOf(reply: RedisReply | undefined): unknown {
  if (reply?.error !== undefined) throw new Error(reply.error)
  const result = reply?.result
  const [left, limit] = Array.isArray(result) && result.length === 2 ? result : []
  if (!Number.isSafeInteger(left) || !Number.isSafeInteger(limit) || limit < 0)
    throw new Unavailable('redis', 'malformed')
  if (left < REFUSED || (left !== REFUSED && left >= limit))
    throw new Unavailable('redis', 'malformed')
  return result
}
