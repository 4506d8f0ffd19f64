/** Throttles addresses that sent too many bad credentials: their next ones are not verified. */

import { UNKNOWN_ADDRESS } from '../../http/address-list.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import { createInFlightCount, FULL, type InFlightCount } from '../../isolate/in-flight.ts'
import { createLruMap } from '../../isolate/lru-map.ts'
import { isUntil } from '../../isolate/period.ts'
import { createWriteBudget } from '../../isolate/write-budget.ts'
import type { Signer } from '../../problems/reasons.ts'
import { secondsUntil } from '../../problems/retry-after.ts'
import type { Mode } from '../../validators/mode.ts'
import type { FailureLimit } from './definition.ts'

/** At about 200 bytes an entry, 2 MB. */
const MAX_ADDRESSES = 10_000
/** So that bad credentials from 10,000 addresses do not cause as many calls at once. */
const MAX_FAILURE_WRITES_PER_SECOND = 100
/** Checks that may always run at once, so that valid callers are served if few failures are left. */
export const MIN_CHECKS_AT_ONCE = 4
/** A check counts for 7 to 8 slots: the platform may have ended its request without notice. */
const CHECK_SLOT_MS = 2_000

export interface FailureCount {
  /** Of all isolates. */
  readonly count: number
  /** The time until the window ends, in seconds, at least 1. */
  readonly resetSeconds: number
}

/** Port: a counter that all isolates share. */
export interface FailureCounter {
  /**
   * Counts one failure of an address, or of a signer's tokens from an address. The first failure starts
   * a window of `windowSeconds`. Throws `Unavailable` if the failure may not have been counted.
   */
  count(address: string, windowSeconds: number, signer?: Signer): Promise<FailureCount>
}

export interface RunningCheck {
  /** Frees the place for another check of the same address. Call it once. */
  end(): void
}

export interface AuthenticationFailures {
  /** Whether {@link waitSeconds} is enforced, or only recorded. */
  readonly mode: Mode
  /**
   * Begins the check of a credential from an address. Returns undefined while too many are in
   * progress. A check in progress counts as a failure: at most as many run at once as failures are
   * left, but always 4.
   */
  begin(address: string): RunningCheck | undefined
  /** Returns how long credentials of the address are refused; undefined: they are checked. */
  waitSeconds(address: string): number | undefined
  /**
   * Returns how long a signer's tokens from the address are refused; undefined: they are checked.
   * Calls `signerOf` only if tokens of any signer from the address are refused.
   */
  waitSecondsOf(address: string, signerOf: () => Signer | undefined): number | undefined
  /**
   * Counts a failure: in this isolate at once, in the shared counter after the response. With a
   * `signer`, the credential was authentic, and counts only for this signer's tokens from the address.
   */
  record(address: string, waitUntil: WaitUntil, signer?: Signer): void
}

export interface AuthenticationFailuresOptions extends FailureLimit {
  readonly limit: number
  readonly windowSeconds: number
  readonly counter: FailureCounter
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Reports whether failures from an address are not counted. Default: no address is exempt. */
  readonly isExempt?: (address: string) => boolean
  /** In the isolate's memory. Default 10,000. */
  readonly maxAddresses?: number | undefined
}

const UNCOUNTED: RunningCheck = { end() {} }

interface Window {
  count: number
  untilMs: number
}

/** No address contains a space. */
const nameOf = (address: string, signer: Signer | undefined): string =>
  signer === undefined ? address : `${address} ${JSON.stringify([signer.issuer, signer.subject])}`

/**
 * Creates the failure count of an isolate. It shares its count with all isolates through `counter`.
 * No request waits for the counter: the reply to a recorded failure contains the count of all
 * isolates.
 *
 * A check counts from its beginning. So an isolate checks at most `limit` + 3 bad credentials of an
 * address in a window, even if they arrive at once. If other isolates have counted all failures,
 * this isolate learns it with its first failure. If the counter is unavailable, each isolate counts
 * only its own failures. If the platform ends a request during its check, the request occupies its
 * place for 14 to 16 seconds and does not count as a failure.
 *
 * An address that was evicted from memory costs one more check, if the counter replies. After
 * `limit` failures an isolate writes no more, and never more than 100 per second over all
 * addresses. A failure that is not written counts only in this isolate.
 *
 * A refused token whose signature is valid is no guess. It counts for its address together with its issuer
 * and subject, and refuses only further tokens of that subject from that address. So a caller with an
 * expired token causes no more verifications than a caller who guesses, and locks no other caller out.
 *
 * Does NOT count requests without a known address: they would share one bucket.
 */
export function createAuthenticationFailures({
  limit,
  windowSeconds,
  mode = 'enforce',
  counter,
  now,
  isExempt = () => false,
  maxAddresses = MAX_ADDRESSES,
}: AuthenticationFailuresOptions): AuthenticationFailures {
  const windows = createLruMap<string, Window>({ max: maxAddresses })
  const signerWindows = createLruMap<string, Window>({ max: maxAddresses })
  /** Until when tokens of at least one signer are refused, in milliseconds, by address. */
  const signersRefusedUntilMs = createLruMap<string, number>({ max: maxAddresses })
  /** Checks in progress by address, without those that have failed. */
  const checks = createLruMap<string, InFlightCount>({ max: maxAddresses })
  const mayWrite = createWriteBudget(MAX_FAILURE_WRITES_PER_SECOND, now)

  const windowMs = windowSeconds * 1000
  const isOpen = (untilMs: number | undefined) => isUntil(untilMs, windowMs, now())
  const isUncounted = (address: string) => address === UNKNOWN_ADDRESS || isExempt(address)

  function findWindow(address: string, signer: Signer | undefined, nowMs: number): Window {
    const all = signer === undefined ? windows : signerWindows
    const name = nameOf(address, signer)
    const known = all.get(name)
    if (known && isOpen(known.untilMs)) return known
    const begun: Window = { count: 0, untilMs: nowMs + windowMs }
    all.set(name, begun)
    return begun
  }

  /** Marks an address from which a signer's tokens are refused. */
  function mark(address: string, signer: Signer | undefined, { count, untilMs }: Window): void {
    if (signer === undefined || count < limit) return
    const knownMs = signersRefusedUntilMs.get(address) ?? 0
    // Not a time from before the clock was set back.
    if (knownMs < untilMs || !isOpen(knownMs)) signersRefusedUntilMs.set(address, untilMs)
  }

  async function learn(address: string, signer: Signer | undefined): Promise<void> {
    try {
      const { count, resetSeconds } = await counter.count(address, windowSeconds, signer)
      const nowMs = now()
      const window = findWindow(address, signer, nowMs)
      window.count = Math.max(window.count, count)
      window.untilMs = nowMs + Math.min(resetSeconds * 1000, windowMs)
      mark(address, signer, window)
    } catch {
      // The count of this isolate stays in force. No response waits for this call.
    }
  }

  /** Returns the rest of a window whose failures are used up. */
  function remainingSeconds(window: Window | undefined): number | undefined {
    if (window === undefined || window.count < limit) return undefined
    return isOpen(window.untilMs) ? secondsUntil(window.untilMs, now()) : undefined
  }

  return {
    mode,

    waitSeconds: (address) => remainingSeconds(windows.get(address)),

    waitSecondsOf(address, signerOf) {
      if (!isOpen(signersRefusedUntilMs.get(address))) return undefined
      const signer = signerOf()
      return signer && remainingSeconds(signerWindows.get(nameOf(address, signer)))
    },

    begin(address) {
      if (isUncounted(address)) return UNCOUNTED
      const window = windows.get(address)
      const failed = window && isOpen(window.untilMs) ? window.count : 0
      const running = checks.get(address) ?? createInFlightCount(CHECK_SLOT_MS)
      const slot = running.enter(Math.max(limit - failed, MIN_CHECKS_AT_ONCE), now())
      if (slot === FULL) return undefined
      checks.set(address, running)
      return {
        end() {
          running.leave(slot)
          if (running.count() === 0 && checks.get(address) === running) checks.delete(address)
        },
      }
    },

    record(address, waitUntil, signer) {
      if (isUncounted(address)) return
      const window = findWindow(address, signer, now())
      if (window.count >= limit) return
      window.count += 1
      mark(address, signer, window)
      if (mayWrite()) waitUntil(learn(address, signer))
    },
  }
}
