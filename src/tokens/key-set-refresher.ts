/** Keeps one remote key set fresh: who fetches, who waits, who goes on with what there is. */
import type { Breakers } from '../breakers/registry.ts'
import { type Fault, Unavailable } from '../errors.ts'
import { sleep } from '../timers.ts'
import type { IgnoredKey, VerificationKey } from './key-ring.ts'
import { DEFAULT_MAX_STALE_SECONDS, LEASE_MS, retryDelayMs } from './key-set-lifetime.ts'
import { createKeySetSource, type KeySetSourceOptions, type Snapshot } from './key-set-source.ts'
import type { WaitUntil } from './principal.ts'

/** Something that an operator wants to know, told once and not per request. */
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
  /** Takes what an operator should know. Default: a line of JSON in the log. */
  readonly report?: (incident: KeySetIncident) => void
  /** Watches the breaker that a refresher is; see `createBreakers`. Default nobody. */
  readonly watch?: Breakers['watch'] | undefined
}

export interface KeySetRefresher {
  /** The set to use now; waits for a renewal only if it must. Throws `Unavailable`. */
  current(waitUntil?: WaitUntil): Promise<Snapshot>
  /** Resolves after a renewal that ends later than now, ours or another request's. Never throws. */
  renewed(waitUntil?: WaitUntil): Promise<void>
  /** Why the last renewal failed; undefined if it did not. */
  failure(): Unavailable | undefined
  /** Whether a renewal is under way. */
  isBusy(): boolean
  /** Milliseconds since a renewal was last begun. */
  sinceAttemptMs(): number
  vouches(key: VerificationKey): boolean
}

/** How often a request looks whether another one has the keys; and for how long at most. */
const POLL_MS = 20
const MAX_POLLS = (LEASE_MS + 500) / POLL_MS

const log = (incident: KeySetIncident) => console.warn(JSON.stringify(incident))

interface Failure {
  readonly error: Unavailable
  readonly count: number
  readonly retryAtMs: number
}

/**
 * One renewal at a time in an isolate. On Workers a request must not await what another one has
 * begun, so requests share data only: the last good set, and a lease that says until when somebody
 * is renewing it. Who needs no newer set goes on with this one; who has none looks again every 20
 * ms. If the renewing request is cancelled, its lease runs out after 3 s and the next request takes
 * over.
 *
 * This is the breaker of the key set, too: open while the pause after a failure lasts, half open while
 * the next attempt is under way; who has no keys is refused at once in both.
 */
export function createKeySetRefresher(options: RefresherOptions): KeySetRefresher {
  const { uri, now, random = Math.random, report = log } = options
  const maxStaleMs = (options.maxStaleSeconds ?? DEFAULT_MAX_STALE_SECONDS) * 1000
  const source = createKeySetSource(options)

  let snapshot: Snapshot | undefined
  let failed: Failure | undefined
  let lease: { readonly untilMs: number } | undefined
  let attemptAtMs = Number.NEGATIVE_INFINITY
  /** Renewals that have ended, well or not. */
  let round = 0

  const age = ({ fetchedAtMs }: Snapshot) => now() - fetchedAtMs
  const usable = () => (snapshot && age(snapshot) < maxStaleMs ? snapshot : undefined)
  const isBusy = () => lease !== undefined && now() < lease.untilMs
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

  /** Takes the lease at once; never rejects. */
  function renew(waitUntil: WaitUntil | undefined): Promise<void> {
    lease = { untilMs: now() + LEASE_MS }
    if (failed !== undefined) observer?.changed('half_open', failed.error.fault)
    const renewal = attempt(lease, waitUntil)
    waitUntil?.(renewal)
    return renewal
  }

  async function attempt(mine: object, waitUntil: WaitUntil | undefined): Promise<void> {
    try {
      const recalled = usable() === undefined ? await source.recall(now()) : undefined
      if (recalled !== undefined) {
        adopt(recalled)
        attemptAtMs = recalled.fetchedAtMs
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
      // Without the lease this is old news: somebody else has tried since.
      if (lease === mine) fail(error)
    } finally {
      if (lease === mine) lease = undefined
      round++
    }
  }

  async function renewed(waitUntil?: WaitUntil): Promise<void> {
    const before = round
    for (let polls = 0; polls < MAX_POLLS && round === before; polls++) {
      if (!isBusy()) return renew(waitUntil)
      await sleep(POLL_MS)
    }
  }

  async function current(waitUntil?: WaitUntil): Promise<Snapshot> {
    const known = usable()
    if (known === undefined) {
      // Nor for the next attempt of a provider that has failed, except the one who makes it.
      const isProbed = failed !== undefined && isBusy()
      if (!isBackingOff() && !isProbed) await renewed(waitUntil)
    } else if (age(known) >= known.lifetime.freshMs && !isBusy() && !isBackingOff()) {
      // While the provider fails nobody waits for it, except the first who finds out.
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
      // Towards its end the set needs a request that looks after it; a cached token would not.
      return age(known) < known.lifetime.freshMs || isBusy() || isBackingOff()
    },
  }
}
