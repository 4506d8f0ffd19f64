/** The keys of an issuer that publishes them over HTTP (RFC 7517 section 5). */

import type { WaitUntil } from '../identity/principal.ts'
import { type KeyHint, keyFor, keyNotFound, type VerificationKey } from './key-ring.ts'
import type { KeySet } from './key-set.ts'
import { DEFAULT_COOL_DOWN_SECONDS } from './key-set-lifetime.ts'
import { createKeySetRefresher, type RefresherOptions } from './key-set-refresher.ts'

export interface RemoteKeySetOptions extends Omit<RefresherOptions, 'now'> {
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** The shortest time between two downloads that unknown keys cause. Default 30. */
  readonly coolDownSeconds?: number
}

/**
 * Creates a key set that is downloaded, cached and refreshed. Until its max-age, the set is served
 * from memory. Near the end, it is refreshed in the background. After it, a request waits for the
 * refresh. While the provider fails, the last good set is served for `maxStaleSeconds`, and
 * requests do not wait.
 *
 * A token with an unknown key causes a download if this isolate has started no download in the last
 * `coolDownSeconds`. Requests with known keys never wait for it. Unknown keys are not cached. A new
 * key is accepted at most one cool-down after its publication, even if it was used before.
 */
export function createRemoteKeySet(options: RemoteKeySetOptions): KeySet {
  const { now = Date.now, coolDownSeconds = DEFAULT_COOL_DOWN_SECONDS } = options
  const refresher = createKeySetRefresher({ ...options, now })

  async function find(hint: KeyHint, waitUntil?: WaitUntil): Promise<VerificationKey> {
    const { ring } = await refresher.current(waitUntil)
    const key = keyFor(ring, hint) ?? (await findMissing(hint, waitUntil))
    if (key !== undefined) return key
    throw keyNotFound(hint)
  }

  async function findMissing(
    hint: KeyHint,
    waitUntil: WaitUntil | undefined,
  ): Promise<VerificationKey | undefined> {
    if (refresher.isBusy() || refresher.sinceAttemptMs() >= coolDownSeconds * 1000) {
      await refresher.renewed(waitUntil)
    }
    const failure = refresher.failure()
    const { ring } = await refresher.current(waitUntil)
    const key = keyFor(ring, hint)
    // The provider may have published this key. Without its response, the token must not be refused
    // as bad.
    if (key === undefined && failure !== undefined) throw failure
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
