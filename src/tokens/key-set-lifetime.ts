/** How long a fetched key set counts, and when to try again: arithmetic, no clock. */

/**
 * The longest that a key can go on being accepted after its issuer removed it, while the issuer
 * answers. `Cache-Control` may shorten it and never lengthens it: the bound is ours to keep.
 */
export const DEFAULT_MAX_AGE_SECONDS = 300
/** A provider that says `max-age=0` is not asked more often than this. */
export const MIN_MAX_AGE_SECONDS = 60
/** How long a known set outlives its provider. */
export const DEFAULT_MAX_STALE_SECONDS = 86_400
/** How often tokens with unknown keys may cause a request to the provider. */
export const DEFAULT_COOL_DOWN_SECONDS = 30
/** How long a `kid` that a fresh set did not have is known not to be there. */
export const UNKNOWN_KEY_SECONDS = 60
/** A refresh that took longer is taken to be dead: its request was cancelled, its isolate frozen. */
export const LEASE_MS = 3_000

/** The part of a set's life in which nothing has to be done; the rest is for renewing in time. */
const FRESH_SHARE = 0.7
/** Isolates that began together should not renew together. */
const FRESH_JITTER = 0.1

const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 30_000

export interface Lifetime {
  /** Age from which on a renewal is begun beside the request. */
  readonly freshMs: number
  /** Age from which on a request waits for the renewal. */
  readonly maxMs: number
}

/** `random` is in [0, 1). */
export function lifetimeOf(
  maxAgeSeconds: number,
  announcedSeconds: number | undefined,
  random: number,
): Lifetime {
  const announced = Math.max(announcedSeconds ?? maxAgeSeconds, MIN_MAX_AGE_SECONDS)
  const ageMs = Math.min(maxAgeSeconds, announced) * 1000
  // Whoever shares somebody else's renewal goes on with the old set for one lease at most.
  return { freshMs: ageMs * (FRESH_SHARE + FRESH_JITTER * random), maxMs: ageMs - LEASE_MS }
}

/** Pause after the nth failure in a row: doubles up to half a minute, half of it by chance. */
export function retryDelayMs(failures: number, random: number): number {
  const delayMs = Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS)
  return delayMs * (0.5 + random / 2)
}
