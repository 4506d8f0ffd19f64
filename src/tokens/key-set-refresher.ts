/**
 * Keeps one remote key set fresh: decides which request downloads it, which waits, and which uses
 * the cached set.
 */

import { Unavailable } from '../errors.ts'
import type { WaitUntil } from '../identity/principal.ts'
import type { Breakers } from '../isolate/breakers.ts'
import { createSingleFlight, type Flight } from '../isolate/single-flight.ts'
import type { Fault } from '../problems/reasons.ts'
import type { IgnoredKey, VerificationKey } from './key-ring.ts'
import {
  createKeySetSource,
  DEFAULT_MAX_STALE_SECONDS,
  type KeySetSourceOptions,
  LEASE_MS,
  retryDelayMs,
  type Snapshot,
} from './key-set-source.ts'

/** An event for operators. It is reported once, not for every request. */
export type KeySetIncident =
  | { readonly kind: 'refresh_failed'; readonly uri: string; readonly fault: Fault }
  | { readonly kind: 'refresh_recovered'; readonly uri: string }
  | {
      readonly kind: 'keys_ignored'
      readonly uri: string
      readonly ignored: readonly IgnoredKey[]
    }

export interface RefresherOptions extends KeySetSourceOptions {
  readonly now: () => number
  /** Receives the events. Default: a line of JSON in the log. */
  readonly report?: (incident: KeySetIncident) => void
  /** Observes the circuit breaker of this refresher; see `createBreakers`. Default: no observer. */
  readonly watch?: Breakers['watch'] | undefined
}

export interface KeySetRefresher {
  /** Returns the set to use now. Waits for a refresh only if necessary. Throws `Unavailable`. */
  current(waitUntil?: WaitUntil): Promise<Snapshot>
  /**
   * Resolves after a refresh that ends later than now, in this request or another one. Never
   * throws.
   */
  renewed(waitUntil?: WaitUntil): Promise<void>
  /** Returns why the last refresh failed. Returns undefined if it succeeded. */
  failure(): Unavailable | undefined
  /** Reports whether a refresh is in progress. */
  isBusy(): boolean
  /**
   * Returns the milliseconds since this isolate last started a download. Infinite before the first.
   */
  sinceAttemptMs(): number
  vouches(key: VerificationKey): boolean
}

/** How often a waiting request checks whether another request has the keys, and for how long. */
const POLL_MS = 20
const MAX_WAIT_MS = LEASE_MS + 500

const log = (incident: KeySetIncident) => console.warn(JSON.stringify(incident))

interface Failure {
  readonly error: Unavailable
  readonly count: number
  readonly retryAtMs: number
}

/**
 * Creates a refresher that runs one refresh at a time in an isolate. A request with a usable set
 * continues with it. A request without one waits for the refresh of another request. If the
 * refreshing request is cancelled, its lease expires after 3 s and the next request takes over.
 *
 * The refresher is also the circuit breaker of the key set. It is open during the pause after a
 * failure, and half open while the next attempt is in progress. Without a usable set, requests are
 * refused at once in both states.
 */
export function createKeySetRefresher(options: RefresherOptions): KeySetRefresher {
  const { uri, now, random = Math.random, report = log } = options
  const maxStaleMs = (options.maxStaleSeconds ?? DEFAULT_MAX_STALE_SECONDS) * 1000
  const source = createKeySetSource(options)

  let snapshot: Snapshot | undefined
  let failed: Failure | undefined
  let attemptAtMs = Number.NEGATIVE_INFINITY
  const refreshes = createSingleFlight<'ended'>({
    now,
    leaseMs: LEASE_MS,
    minPollMs: POLL_MS,
    maxPollMs: POLL_MS,
  })

  const age = ({ fetchedAtMs }: Snapshot) => now() - fetchedAtMs
  const usable = () => (snapshot && age(snapshot) < maxStaleMs ? snapshot : undefined)
  const isBusy = () => refreshes.latest(uri)?.isInProgress() === true
  const isBackingOff = () => failed !== undefined && now() < failed.retryAtMs

  const observer = options.watch?.({
    name: 'key_set',
    target: uri,
    state: () => (failed === undefined ? 'closed' : isBusy() ? 'half_open' : 'open'),
  })

  function failure(): Unavailable | undefined {
    if (failed === undefined) return undefined
    const { error, retryAtMs } = failed
    const retryAfterSeconds = Math.max(1, Math.ceil((retryAtMs - now()) / 1000))
    return new Unavailable('key_set', error.fault, { cause: error, retryAfterSeconds })
  }

  function adopt(next: Snapshot): void {
    if (snapshot !== undefined && next.fetchedAtMs < snapshot.fetchedAtMs) return
    const isNew = next.text !== snapshot?.text
    snapshot = next
    if (isNew && next.ignored.length > 0) {
      report({ kind: 'keys_ignored', uri, ignored: next.ignored })
    }
  }

  function fail(cause: unknown): void {
    const error =
      cause instanceof Unavailable ? cause : new Unavailable('key_set', 'malformed', { cause })
    if (failed === undefined) report({ kind: 'refresh_failed', uri, fault: error.fault })
    const count = (failed?.count ?? 0) + 1
    failed = { error, count, retryAtMs: now() + retryDelayMs(count, random()) }
    observer?.changed('open', error.fault)
  }

  /** Never rejects. */
  function renew(
    waitUntil: WaitUntil | undefined,
    refresh: Flight<'ended'> = refreshes.begin(uri),
  ): Promise<void> {
    if (failed !== undefined) observer?.changed('half_open', failed.error.fault)
    const renewal = attempt(refresh, waitUntil)
    waitUntil?.(renewal)
    return renewal
  }

  async function attempt(
    refresh: Flight<'ended'>,
    waitUntil: WaitUntil | undefined,
  ): Promise<void> {
    /** False after another request has replaced this refresh, because its lease had expired. */
    const isLatest = () => refreshes.latest(uri) === refresh
    try {
      const recalled = usable() === undefined ? await source.recall(now()) : undefined
      if (recalled !== undefined) {
        adopt(recalled)
      }
      if (recalled === undefined || age(recalled) >= recalled.lifetime.freshMs) {
        attemptAtMs = now()
        const fetched = await source.fetch(snapshot, attemptAtMs)
        adopt(fetched)
        const keeping = source.keep(fetched)
        waitUntil?.(keeping)
      }
      if (failed !== undefined) {
        failed = undefined
        observer?.changed('closed', undefined)
        report({ kind: 'refresh_recovered', uri })
      }
    } catch (error) {
      // Otherwise the failure is outdated: another request has tried since.
      if (isLatest()) fail(error)
    } finally {
      // Otherwise waiting requests continue to wait for the newer refresh.
      if (isLatest()) refresh.end('ended')
    }
  }

  async function renewed(waitUntil?: WaitUntil): Promise<void> {
    const running = refreshes.latest(uri)
    if (running?.isInProgress() !== true) return renew(waitUntil)
    try {
      const { flight, outcome } = await refreshes.follow(uri, running, (waitedMs) => {
        if (waitedMs > MAX_WAIT_MS) throw new Unavailable('key_set', 'timeout')
      })
      if (outcome === undefined) await renew(waitUntil, flight)
    } catch {
      // The caller uses the set or the failure that this isolate has now.
    }
  }

  async function current(waitUntil?: WaitUntil): Promise<Snapshot> {
    const known = usable()
    if (known === undefined) {
      // After a failure, requests do not wait for the next attempt. Only the request that starts it
      // waits.
      const isProbed = failed !== undefined && isBusy()
      if (!isBackingOff() && !isProbed) await renewed(waitUntil)
    } else if (age(known) >= known.lifetime.freshMs && !isBusy() && !isBackingOff()) {
      // While the provider fails, no request waits for it, except the first, which discovers the
      // failure.
      const mustWait = age(known) >= known.lifetime.maxMs && failed === undefined
      const renewal = renew(waitUntil)
      if (mustWait) await renewal
    }
    const set = usable()
    if (set !== undefined) return set
    throw failure() ?? new Unavailable('key_set', 'timeout')
  }

  return {
    current,
    renewed,
    failure,
    isBusy,
    sinceAttemptMs: () => now() - attemptAtMs,
    vouches(key) {
      const known = usable()
      if (known === undefined || !known.ring.has(key)) return false
      // Near the end of its life the set needs a request that refreshes it. A cached token would
      // not.
      return age(known) < known.lifetime.freshMs || isBusy() || isBackingOff()
    },
  }
}
