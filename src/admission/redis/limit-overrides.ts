/** Operator controls of one window of a limit: override the limit, or reset the count. */
import type { RedisRest } from '../../redis/rest.ts'
import { ask } from '../../redis/result.ts'

/** Another limit for one window. */
export interface LimitOverride {
  /** From `limitKeyOf`. */
  readonly key: string
  /** Requests per window, a whole number of at least 1. */
  readonly requests: number
  /** How long it is in force, in whole seconds of at least 1; absent: until it is removed. */
  readonly ttlSeconds?: number | undefined
}

/** One window to reset. */
export interface LimitReset {
  /** From `limitKeyOf`. */
  readonly key: string
  /** The window length of the limit's rule. */
  readonly windowSeconds: number
}

/**
 * Writes the keys that both limiters read. Each call is one command and is in force in every
 * isolate from the next request on, with two exceptions. An isolate that has cached a refusal
 * repeats it for up to 5 s. An isolate that holds leased units may spend them until its next call.
 * Throws `Unavailable` if the command failed.
 */
export interface LimitControls {
  /** Sets an override. It replaces an existing one. */
  override(override: LimitOverride): Promise<void>
  /** Removes an override. Does nothing if there is none. */
  lift(key: string): Promise<void>
  /** Deletes the count of a window. */
  reset(window: LimitReset): Promise<void>
}

const OVERRIDE_PREFIX = 'pc:limit-override:'
/** `@upstash/ratelimit` appends this to a limiter's prefix. Exact windows use the same keys. */
const LIMITER_SUFFIX = ':dynamic:global'

/**
 * Returns the prefix of a window for `@upstash/ratelimit`, which then reads the override at
 * {@link overrideKey}.
 */
export function overridePrefix(limitKey: string): string {
  return OVERRIDE_PREFIX + limitKey
}

/** Returns the key of a window's override. The value is the number of requests. */
export function overrideKey(limitKey: string): string {
  return overridePrefix(limitKey) + LIMITER_SUFFIX
}

/** Returns the key of an exact window. The other limiter appends `:` and the number of a window. */
export function counterName(limitKey: string): string {
  return `pc:limit:${limitKey}`
}

/** Creates the controls. `now` is in milliseconds since the epoch. */
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
      // Include the next window: an isolate with a fast clock may have begun it.
      const numbers = [current - 1, current, current + 1]
      const counters = numbers.map((number) => `${counterName(key)}:${number}`)
      await ask(rest, ['DEL', counterName(key), ...counters])
    },
  }
}
