/** The key set of an issuer that is downloaded, cached in the isolate and refreshed. */
import { Unavailable } from '../../errors.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import type { Breakers } from '../../isolate/breakers.ts'
import { isUntil, isWithin } from '../../isolate/period.ts'
import { createSingleFlight, type Flight } from '../../isolate/single-flight.ts'
import type { Fault } from '../../problems/reasons.ts'
import { secondsUntil } from '../../problems/retry-after.ts'
import { MetadataRefused } from './discovery.ts'
import { type IgnoredKey, type KeyHint, keyFor, keyNotFound } from './key-ring.ts'
import type { KeySet } from './key-set.ts'
import {
  createKeySetSource,
  type KeySetSourceOptions,
  LEASE_MS,
  MAX_STALE_MS,
  type Snapshot,
} from './key-set-source.ts'

/** An event for operators. It is reported once, not for every request. */
export type KeySetIncident = { readonly uri: string } & (
  | {
      readonly kind: 'refresh_failed'
      readonly fault: Fault
      /** The mistake in the issuer's metadata. */
      readonly detail?: string
    }
  | { readonly kind: 'refresh_recovered' }
  | { readonly kind: 'keys_ignored'; readonly ignored: readonly IgnoredKey[] }
)

export interface RemoteKeySetOptions extends KeySetSourceOptions {
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** Default: writes a line of JSON to the log. */
  readonly report?: (incident: KeySetIncident) => void
  /** Observes the circuit breaker of this key set; see `createBreakers`. */
  readonly watch?: Breakers['watch'] | undefined
}

/** The shortest time between two downloads that tokens with unknown keys cause. */
const COOL_DOWN_MS = 30_000
const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 30_000
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
 * Creates a key set that is downloaded, cached and refreshed. Until its max-age, the set is served
 * from memory. Near the end, it is refreshed in the background. After it, a request waits for the
 * refresh. While the provider fails, the last good set is served for a day, and requests do not
 * wait. An isolate runs one refresh at a time. If the refreshing request is cancelled, its lease
 * expires after 3 s and the next request takes over.
 *
 * A token with an unknown key causes a download if this isolate has started no download in the last
 * 30 s. Requests with known keys never wait for it. Unknown keys are not cached. A new key is
 * accepted at most 30 s after its publication, even if it was used before.
 *
 * The set is also the circuit breaker of its provider: open during the pause after a failure, and
 * half open during the next attempt. Without a usable set, both refuse requests at once.
 */
export function createRemoteKeySet(options: RemoteKeySetOptions): KeySet {
  const { uri, now = () => Date.now(), random = Math.random, report = log } = options
  const source = createKeySetSource(options)

  let snapshot: Snapshot | undefined
  let failure: Failure | undefined
  let attemptAtMs = 0
  const refreshes = createSingleFlight<'ended'>({
    now,
    leaseMs: LEASE_MS,
    minPollMs: POLL_MS,
    maxPollMs: POLL_MS,
  })

  const isYounger = ({ fetchedAtMs }: Snapshot, ageMs: number, stepMs?: number) =>
    isWithin(fetchedAtMs, ageMs, now(), stepMs)
  // One from before the clock was set back is usable, too: while the provider fails, there may be no other.
  const usable = () =>
    snapshot && isYounger(snapshot, MAX_STALE_MS, MAX_STALE_MS) ? snapshot : undefined
  const isFresh = (set: Snapshot) => isYounger(set, set.lifetime.freshMs)
  const isRefreshing = () => refreshes.latest(uri)?.isInProgress() === true
  const isBackingOff = () =>
    failure !== undefined && isUntil(failure.retryAtMs, MAX_RETRY_MS, now())

  const observer = options.watch?.({
    name: 'key_set',
    target: uri,
    state: () => (failure === undefined ? 'closed' : isRefreshing() ? 'half_open' : 'open'),
    fetchedAtMs: () => snapshot?.fetchedAtMs,
  })

  /** Returns the last failure, with the remaining pause. Undefined after a success. */
  function lastError(): Unavailable | undefined {
    if (failure === undefined) return undefined
    const { error, retryAtMs } = failure
    const retryAfterSeconds = secondsUntil(retryAtMs, now())
    return new Unavailable('key_set', error.fault, { cause: error, retryAfterSeconds })
  }

  function adopt(next: Snapshot): void {
    // A later download may end first. One from before the clock was set back only seems to be later.
    if (snapshot && next.fetchedAtMs < snapshot.fetchedAtMs && isYounger(snapshot, MAX_STALE_MS))
      return
    const isNew = next.text !== snapshot?.text
    snapshot = next
    if (isNew && next.ignored.length > 0) {
      report({ kind: 'keys_ignored', uri, ignored: next.ignored })
    }
  }

  function fail(cause: unknown): void {
    const error =
      cause instanceof Unavailable ? cause : new Unavailable('key_set', 'malformed', { cause })
    if (failure === undefined) {
      const { cause, fault } = error
      const detail = cause instanceof MetadataRefused ? { detail: cause.message } : undefined
      report({ kind: 'refresh_failed', uri, fault, ...detail })
    }
    const count = (failure?.count ?? 0) + 1
    failure = { error, count, retryAtMs: now() + retryDelayMs(count, random()) }
    observer?.changed('open', error.fault)
  }

  function recover(): void {
    if (failure === undefined) return
    failure = undefined
    observer?.changed('closed', undefined)
    report({ kind: 'refresh_recovered', uri })
  }

  /** Never rejects. */
  function refresh(
    waitUntil: WaitUntil | undefined,
    flight: Flight<'ended'> = refreshes.begin(uri),
  ): Promise<void> {
    if (failure !== undefined) observer?.changed('half_open', failure.error.fault)
    const attempted = attempt(flight, waitUntil)
    waitUntil?.(attempted)
    return attempted
  }

  async function attempt(flight: Flight<'ended'>, waitUntil: WaitUntil | undefined): Promise<void> {
    /** False after another request has replaced this refresh, because its lease had expired. */
    const isLatest = () => refreshes.latest(uri) === flight
    try {
      const recalled = usable() === undefined ? await source.readCache(now()) : undefined
      if (recalled !== undefined) adopt(recalled)
      if (recalled === undefined || !isFresh(recalled)) {
        attemptAtMs = now()
        const fetched = await source.fetch(snapshot, attemptAtMs)
        adopt(fetched)
        const keeping = source.writeCache(fetched)
        waitUntil?.(keeping)
      }
      recover()
    } catch (error) {
      // Otherwise the failure is outdated: another request has tried since.
      if (isLatest()) fail(error)
    } finally {
      // Otherwise waiting requests continue to wait for the newer refresh.
      if (isLatest()) flight.end('ended')
    }
  }

  /** Waits for a refresh that ends later than now, in this request or another one. Never rejects. */
  async function refreshed(waitUntil: WaitUntil | undefined): Promise<void> {
    const running = refreshes.latest(uri)
    if (running?.isInProgress() !== true) return refresh(waitUntil)
    try {
      const { flight, outcome } = await refreshes.follow(uri, running, (waitedMs) => {
        if (waitedMs > MAX_WAIT_MS) throw new Unavailable('key_set', 'timeout')
      })
      if (outcome === undefined) await refresh(waitUntil, flight)
    } catch {
      // The caller uses the set or the failure that this isolate has now.
    }
  }

  /** Returns the set to use now. Waits for a refresh only if necessary. Throws `Unavailable`. */
  async function current(waitUntil: WaitUntil | undefined): Promise<Snapshot> {
    const cached = usable()
    if (cached === undefined) {
      // After a failure, requests do not wait for the next attempt. Only the request that starts it
      // waits.
      const isProbed = failure !== undefined && isRefreshing()
      if (!isBackingOff() && !isProbed) await refreshed(waitUntil)
    } else if (!isFresh(cached) && !isRefreshing() && !isBackingOff()) {
      // While the provider fails, no request waits for it, except the first, which discovers the
      // failure.
      const mustWait = !isYounger(cached, cached.lifetime.maxMs) && failure === undefined
      const refreshing = refresh(waitUntil)
      if (mustWait) await refreshing
    }
    const set = usable()
    if (set !== undefined) return set
    throw lastError() ?? new Unavailable('key_set', 'timeout')
  }

  async function findUnknown(hint: KeyHint, waitUntil: WaitUntil | undefined) {
    if (isRefreshing() || !isWithin(attemptAtMs, COOL_DOWN_MS, now())) await refreshed(waitUntil)
    const error = lastError()
    const { ring, ignored } = await current(waitUntil)
    const key = keyFor(ring, hint, ignored)
    if (key !== undefined) return key
    // If the provider fails, it may have published this key: the token is not refused as bad.
    throw error ?? keyNotFound(hint, ignored)
  }

  return {
    async find(hint, waitUntil) {
      const { ring, ignored } = await current(waitUntil)
      return keyFor(ring, hint, ignored) ?? findUnknown(hint, waitUntil)
    },
    isCurrent(key) {
      const cached = usable()
      if (cached === undefined || !cached.ring.has(key)) return false
      // Near the end of its life, the set needs a request that refreshes it. A token that is served
      // from the cache would not.
      return isFresh(cached) || isRefreshing() || isBackingOff()
    },
    async ready(waitUntil) {
      await current(waitUntil)
    },
  }
}

/** Returns the pause after n failures, in milliseconds. Doubles up to 30 s; half is random. */
function retryDelayMs(failures: number, random: number): number {
  const delayMs = Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS)
  return delayMs * (0.5 + random / 2)
}
