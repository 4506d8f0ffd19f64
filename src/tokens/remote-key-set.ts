/** The keys of an issuer that publishes them over HTTP (RFC 7517 section 5). */
import { LRUCache } from 'lru-cache'
import { type KeyHint, keyFor, type VerificationKey } from './key-ring.ts'
import type { KeySet } from './key-set.ts'
import { DEFAULT_COOL_DOWN_SECONDS, UNKNOWN_KEY_SECONDS } from './key-set-lifetime.ts'
import { createKeySetRefresher, type RefresherOptions } from './key-set-refresher.ts'
import type { WaitUntil } from './principal.ts'
import { rejected } from './rejection.ts'

export interface RemoteKeySetOptions extends Omit<RefresherOptions, 'now'> {
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** How often unknown keys may cause a request. Default 30. */
  readonly coolDownSeconds?: number
}

const MAX_UNKNOWN_KEYS = 1_000

/**
 * A key set that is fetched, kept and renewed. Up to its max-age it serves from memory; towards
 * the end it renews beside a request; after it, a request waits for the renewal. While the
 * provider fails, the last good set serves for a day, and requests do not wait. A `kid` that is
 * not in the set asks the provider again, once per cool-down for all of them together, and known
 * keys never wait for that.
 */
export function createRemoteKeySet(options: RemoteKeySetOptions): KeySet {
  const { now = Date.now, coolDownSeconds = DEFAULT_COOL_DOWN_SECONDS } = options
  const refresher = createKeySetRefresher({ ...options, now })
  /** Until when each `kid` is known not to exist. */
  const unknown = new LRUCache<string, number>({ max: MAX_UNKNOWN_KEYS })

  async function find(hint: KeyHint, waitUntil?: WaitUntil): Promise<VerificationKey> {
    const { ring } = await refresher.current(waitUntil)
    const key = keyFor(ring, hint) ?? (await findUnknown(hint, waitUntil))
    if (key !== undefined) return key
    throw rejected('kid_unknown')
  }

  async function findUnknown(
    hint: KeyHint,
    waitUntil: WaitUntil | undefined,
  ): Promise<VerificationKey | undefined> {
    const kid = hint.kid ?? ''
    if (now() < (unknown.get(kid) ?? 0)) return undefined
    const asked = refresher.isBusy() || refresher.sinceAttemptMs() >= coolDownSeconds * 1000
    if (asked) await refresher.renewed(waitUntil)
    const failure = refresher.failure()
    const { ring } = await refresher.current(waitUntil)
    const key = keyFor(ring, hint)
    // The provider may know this key, and cannot be asked: that is nobody's bad token yet.
    if (key === undefined && failure !== undefined) throw failure
    if (key === undefined && asked) unknown.set(kid, now() + UNKNOWN_KEY_SECONDS * 1000)
    return key
  }

  return {
    find,
    vouches: refresher.vouches,
    async ready(waitUntil) {
      await refresher.current(waitUntil)
    },
  }
}
