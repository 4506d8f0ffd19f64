/** What an operator can do to one window of a limit: give it another size, or start it anew. */
import type { RedisRest } from './rest.ts'
import { ask } from './result.ts'

/** Another limit for one window. */
export interface LimitOverride {
  /** From `limitKeyOf`. */
  readonly key: string
  /** Requests per window, a whole number of at least 1. */
  readonly requests: number
  /** How long it holds, whole seconds of at least 1; absent: until it is lifted. */
  readonly ttlSeconds?: number | undefined
}

/** One window, to be counted from nothing. */
export interface LimitReset {
  /** From `limitKeyOf`. */
  readonly key: string
  /** Of the limit's rule. */
  readonly windowSeconds: number
}

/**
 * Writes what both limiters read. Each call is one command, in force in every isolate from the next
 * request on, but that an isolate which has just refused goes on for up to 5 s. Throws
 * `Unavailable` where it was not stored.
 */
export interface LimitControls {
  /** Replaces an override that is there. */
  override(override: LimitOverride): Promise<void>
  /** Takes an override back; nothing happens where there is none. */
  lift(key: string): Promise<void>
  /** Forgets what was counted. */
  reset(window: LimitReset): Promise<void>
}

const OVERRIDE_PREFIX = 'pc:limit-override:'
/** `@upstash/ratelimit` adds this to a limiter's prefix; exact windows do as it does. */
const LIMITER_SUFFIX = ':dynamic:global'

/** `@upstash/ratelimit`'s prefix for a window: it reads the override at {@link overrideKey}. */
export function overridePrefix(limitKey: string): string {
  return OVERRIDE_PREFIX + limitKey
}

/** Where the override of a window is. Its value is the number of requests. */
export function overrideKey(limitKey: string): string {
  return overridePrefix(limitKey) + LIMITER_SUFFIX
}

/** Where an exact window is; the other limiter appends `:` and the number of one of its windows. */
export function counterName(limitKey: string): string {
  return `pc:limit:${limitKey}`
}

/** Makes the writer. `now` is milliseconds since the epoch. */
export function createLimitControls(rest: RedisRest, now: () => number = Date.now): LimitControls {
  return {
    async override({ key, requests, ttlSeconds }) {
      for (const number of [requests, ttlSeconds ?? 1]) {
        if (!Number.isSafeInteger(number) || number < 1)
          throw new RangeError(`limit override: needs whole numbers above 0, not ${number}`)
      }
      const life = ttlSeconds === undefined ? [] : ['EX', ttlSeconds]
      await ask(rest, ['SET', overrideKey(key), requests, ...life])
    },
    async lift(key) {
      await ask(rest, ['DEL', overrideKey(key)])
    },
    async reset({ key, windowSeconds }) {
      const current = Math.floor(now() / (windowSeconds * 1000))
      // And the next one, which an isolate whose clock is ahead may have begun.
      const numbers = [current - 1, current, current + 1]
      const counters = numbers.map((number) => `${counterName(key)}:${number}`)
      await ask(rest, ['DEL', counterName(key), ...counters])
    },
  }
}
