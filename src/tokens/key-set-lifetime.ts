/** Computes how long a downloaded key set is valid, and when to retry. No clock. */

/**
 * The longest time for which a removed key is still accepted while the issuer responds, in seconds.
 * `Cache-Control` may shorten it, but never lengthens it.
 */
export const DEFAULT_MAX_AGE_SECONDS = 300
/**
 * The shortest accepted max-age. It bounds the downloads from a provider that sends `max-age=0`.
 */
export const MIN_MAX_AGE_SECONDS = 60
/** How long the last good set is used while the provider fails. */
export const DEFAULT_MAX_STALE_SECONDS = 86_400
/** The shortest time between two downloads that tokens with unknown keys cause. */
export const DEFAULT_COOL_DOWN_SECONDS = 30
/**
 * A refresh that takes longer counts as dead: its request was cancelled, or its isolate was frozen.
 */
export const LEASE_MS = 3_000

/**
 * The fraction of a set's max-age in which no refresh is needed. The rest is for refreshing in
 * time.
 */
const FRESH_SHARE = 0.7
/** Isolates that started together should not refresh together. */
const FRESH_JITTER = 0.1

const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 30_000

export interface Lifetime {
  /** The age from which a refresh starts in the background, in milliseconds. */
  readonly freshMs: number
  /** The age from which a request waits for the refresh, in milliseconds. */
  readonly maxMs: number
}

/**
 * Returns the lifetime of a set. `announcedSeconds` is the provider's `max-age`. `random` is in [0,
 * 1).
 */
export function lifetimeOf(
  maxAgeSeconds: number,
  announcedSeconds: number | undefined,
  random: number,
): Lifetime {
  const announced = Math.max(announcedSeconds ?? maxAgeSeconds, MIN_MAX_AGE_SECONDS)
  const ageMs = Math.min(maxAgeSeconds, announced) * 1000
  // A request that shares another request's refresh uses the old set for at most one lease.
  return { freshMs: ageMs * (FRESH_SHARE + FRESH_JITTER * random), maxMs: ageMs - LEASE_MS }
}

/**
 * Returns the pause after the nth failure in a row, in milliseconds. It doubles up to 30 s, and
 * half of it is random.
 */
export function retryDelayMs(failures: number, random: number): number {
  const delayMs = Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS)
  return delayMs * (0.5 + random / 2)
}
