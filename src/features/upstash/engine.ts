/** The sliding window of `@upstash/ratelimit`, with its commands sent in our own pipeline. */
import { Ratelimit } from '@upstash/ratelimit'
import { nextAdmissionMs } from '../../access/admission/approximate-window.ts'
import type { LimitRequest, LimitRule, RateLimit } from '../../access/admission/limit.ts'
import type { PendingLimits, PipelinedEngine } from '../../access/admission/redis/limit-engine.ts'
import { counterName } from '../../access/admission/redis/limit-overrides.ts'
import { Unavailable } from '../../errors.ts'
import type { RedisCommand, RedisConnection, RedisReply } from '../../redis/connection.ts'
import { malformed, readCount, readInteger, readList, readResult } from '../../redis/reply.ts'
import {
  createScript,
  KEY_LOCKING,
  type Script,
  scriptName,
  scriptReplies,
} from '../../redis/script.ts'

type Window = ReturnType<ReturnType<typeof Ratelimit.slidingWindow>>
type WindowRedis = Parameters<Window['limit']>[0]['redis']

/** The two methods of its Redis client that the limiter calls. */
interface ScriptRunner {
  evalsha(sha: string, keys: readonly string[], args: readonly unknown[]): Promise<unknown>
  eval(script: string, keys: readonly string[], args: readonly unknown[]): Promise<unknown>
}

/** Units left in the script's reply for a refused request. */
const REFUSED = -1

/** The limiter's scripts by the name that it gives them, as servers take them. */
const scripts = new Map<string, Script>()
const windows = new WeakMap<LimitRule, Window>()

function findWindow(rule: LimitRule): Window {
  const known = windows.get(rule)
  if (known !== undefined) return known
  const window = Ratelimit.slidingWindow(rule.limit, `${rule.windowSeconds} s`)()
  windows.set(rule, window)
  return window
}

/**
 * Prepares the command of one limit, or of the operator's override. The limiter issues its
 * `EVALSHA` before it first awaits, so the command is available when this function returns. Nothing
 * depends on counting microtasks. If Redis has not cached the script (`NOSCRIPT`, after a
 * failover), it is sent in full, once, in a separate call.
 */
function prepareLimit({ rule, key }: LimitRequest, redis: RedisConnection) {
  const windowMs = rule.windowSeconds * 1000
  const reply = Promise.withResolvers<unknown>()
  let sent: { keys: readonly string[]; command: RedisCommand } | undefined
  const runner: ScriptRunner = {
    evalsha(sha, keys, args) {
      const own = scripts.get(sha)?.name(redis)
      const name = typeof own === 'string' ? own : sha
      sent = { keys, command: ['EVALSHA', name, keys.length, ...keys, ...args.map(asArgument)] }
      return reply.promise
    },
    async eval(text, keys, args) {
      const sha = await scriptName(text)
      const script = scripts.get(sha) ?? createScript(text.replace(KEY_LOCKING, ''))
      scripts.set(sha, script)
      const command = ['EVALSHA', sha, keys.length, ...keys, ...args.map(asArgument)]
      const unknown = { script, command, reply: { error: 'NOSCRIPT' } }
      const [answer] = await scriptReplies(redis, [unknown])
      await script.name(redis)
      return readCounted(answer)
    },
  }
  const state = findWindow(rule).limit(
    {
      redis: runner as unknown as WindowRedis,
      // The limiter appends the suffix of an override.
      prefix: redis.keys.limitOverride + key,
      dynamicLimits: true,
    },
    counterName(redis.keys, key),
  )
  const [current, previous] = sent?.keys ?? []
  if (sent === undefined || current === undefined || previous === undefined)
    throw new Error('upstash engine: the limiter sent no command')
  // settle() reports the limiter's failure. Prevent an unhandled rejection.
  state.catch(() => undefined)

  return {
    command: sent.command,
    counters: [current, previous],
    /** Returns the limit's state from the reply and the counters before it. */
    async settle(
      answer: RedisReply,
      [countedNow, countedBefore]: readonly [number, number],
    ): Promise<RateLimit | Unavailable> {
      try {
        reply.resolve(readCounted(answer))
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

export const upstashEngine: PipelinedEngine = { feature: 'upstash', prepareLimits }

function prepareLimits(limits: readonly LimitRequest[], redis: RedisConnection): PendingLimits {
  const pending = limits.map((limit) => prepareLimit(limit, redis))
  const counters = pending.flatMap((limit) => limit.counters)
  return {
    commands: [['MGET', ...counters], ...pending.map(({ command }) => command)],
    settle([values, ...counted]) {
      const before = readList(readResult(values), counters.length)
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
 * Checks the result of the limiter's script: requests left (-1: refused), and the limit. The
 * limiter itself treats every value that is not below zero as an admission, even null. Throws the
 * error text of Redis, because the limiter looks for `NOSCRIPT` in it.
 */
function readCounted(reply: RedisReply | undefined): unknown {
  if (reply?.error !== undefined) throw new Error(reply.error)
  const counted = readList(reply?.result, 2)
  const left = readInteger(counted[0])
  const limit = readCount(counted[1])
  if (left < REFUSED || (left !== REFUSED && left >= limit)) throw malformed()
  return counted
}
