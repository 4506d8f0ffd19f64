/** Addresses that have sent too many bad credentials: whose next one is not worth looking at. */
import { LRUCache } from 'lru-cache'
import type { WaitUntil } from '../tokens/principal.ts'
import type { Mode } from '../validators/mode.ts'
import type { FailureLimit } from './abuse-definition.ts'
import { UNKNOWN_ADDRESS } from './address-list.ts'
import { createWriteBudget } from './write-budget.ts'

/** At about 200 bytes an entry, 2 MB. */
const MAX_ADDRESSES = 10_000
/** Bad credentials from ten thousand addresses must not become as many calls at once. */
export const MAX_FAILURE_WRITES_PER_SECOND = 100

/** Failures of an address in its window, over all isolates. */
export interface FailureCount {
  readonly count: number
  /** In how many seconds the window ends, at least 1. */
  readonly resetSeconds: number
}

/** Port: counts where every isolate can see it. */
export interface FailureCounter {
  /**
   * Counts one failure; a window of `windowSeconds` begins with its first. Throws `Unavailable` if
   * it may not have been counted.
   */
  count(address: string, windowSeconds: number): Promise<FailureCount>
}

export interface AuthenticationFailures {
  /** Whether {@link waitSeconds} is to be obeyed, or only told. */
  readonly mode: Mode
  /** For how long credentials of an address are refused unread; undefined: they are looked at. */
  waitSeconds(address: string): number | undefined
  /** Counts a failure, in this isolate at once, and in the counter behind the answer. */
  record(address: string, waitUntil: WaitUntil): void
}

export interface AuthenticationFailuresOptions extends FailureLimit {
  readonly limit: number
  readonly windowSeconds: number
  readonly counter: FailureCounter
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Whether failures that come from an address are nobody's. Default: of none. */
  readonly isExempt?: (address: string) => boolean
  /** Addresses that the isolate keeps in mind. Default 10,000. */
  readonly maxAddresses?: number
}

interface Window {
  count: number
  untilMs: number
}

/**
 * Counts in the isolate and, through `counter`, over all of them. Nothing is asked before a request:
 * what others have counted comes with the reply to a failure of this isolate's own. So an isolate
 * looks at `limit` bad credentials of an address in a window, and at those that were already being
 * looked at when the last of these failed; and one that comes to know the address later, at one and
 * those. Where the counter is out of reach, each isolate counts for itself.
 *
 * An address that others push out of the memory costs one more look, if the counter answers. After
 * `limit` failures an isolate writes no more, and never more than 100 a second over all addresses:
 * a flood costs what it is allowed to. What is not written is counted in the isolate alone.
 *
 * Nothing is counted for those whose address nobody knows: the one bucket would be everybody's.
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
  const windows = new LRUCache<string, Window>({ max: maxAddresses })

  const mayWrite = createWriteBudget(MAX_FAILURE_WRITES_PER_SECOND, now)

  function windowOf(address: string, nowMs: number): Window {
    const known = windows.get(address)
    if (known !== undefined && nowMs < known.untilMs) return known
    const begun: Window = { count: 0, untilMs: nowMs + windowSeconds * 1000 }
    windows.set(address, begun)
    return begun
  }

  async function learn(address: string): Promise<void> {
    try {
      const { count, resetSeconds } = await counter.count(address, windowSeconds)
      const nowMs = now()
      const window = windowOf(address, nowMs)
      window.count = Math.max(window.count, count)
      window.untilMs = nowMs + Math.min(resetSeconds, windowSeconds) * 1000
    } catch {
      // What this isolate has counted itself holds; nobody waits for this who could be told.
    }
  }

  return {
    mode,

    waitSeconds(address) {
      const window = windows.get(address)
      if (window === undefined || window.count < limit) return undefined
      const waitMs = window.untilMs - now()
      return waitMs > 0 ? Math.ceil(waitMs / 1000) : undefined
    },

    record(address, waitUntil) {
      if (address === UNKNOWN_ADDRESS || isExempt(address)) return
      const window = windowOf(address, now())
      if (window.count >= limit) return
      window.count += 1
      if (mayWrite()) waitUntil(learn(address))
    },
  }
}
