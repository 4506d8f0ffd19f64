import type { JSONWebKeySet } from 'jose'
import { Misconfigured, Unavailable } from '../errors.ts'
import type { WaitUntil } from '../identity/principal.ts'
import type { Algorithm } from '../validators/jwk.ts'
import {
  importKeys,
  type KeyHint,
  type KeyRing,
  keyFor,
  keyNotFound,
  type VerificationKey,
} from './key-ring.ts'
import { createKeySetRefresher, type RefresherOptions } from './key-set-refresher.ts'
import { DEFAULT_COOL_DOWN_SECONDS } from './key-set-source.ts'

/** Port: the keys of one issuer. */
export interface KeySet {
  /**
   * Returns the key that a token names. Throws `Denied` (`kid_unknown`, `kid_missing`,
   * `key_algorithm`) if there is no such key. Throws `Unavailable` if the keys cannot be loaded.
   * `waitUntil` keeps background work of this request alive.
   */
  find(hint: KeyHint, waitUntil?: WaitUntil): Promise<VerificationKey>
  /**
   * Reports whether a key that was found before is still valid. No I/O. Returns false if uncertain.
   */
  vouches(key: VerificationKey): boolean
  /** Resolves when there are keys. Throws `Unavailable` if no keys can be loaded. */
  ready(waitUntil?: WaitUntil): Promise<void>
}

/**
 * Creates a key set from the configuration. It is never downloaded and never stale. A key with an
 * `exp` expires by the clock. Tokens that were verified with it expire with it.
 */
export function createInlineKeySet(
  jwks: JSONWebKeySet,
  algorithms: readonly Algorithm[],
  now: () => number = Date.now,
): KeySet {
  let ring: KeyRing | undefined
  // Concurrent first requests each import the keys, and the first result is kept. On Workers, they
  // must not await one another's promises.
  const load = async (): Promise<KeyRing> => {
    const imported = await importKeys(jwks, algorithms)
    if (imported === undefined || imported.ring.size === 0) {
      throw new Misconfigured('A key set', ['has no usable key'])
    }
    ring ??= imported.ring
    return ring
  }
  const isLive = ({ expiresAtSeconds }: VerificationKey) =>
    expiresAtSeconds === undefined || now() < expiresAtSeconds * 1000
  const liveKeys = async (): Promise<KeyRing> =>
    new Set([...(ring ?? (await load()))].filter(isLive))
  return {
    async find(hint) {
      const key = keyFor(await liveKeys(), hint)
      if (key === undefined) throw keyNotFound(hint)
      return key
    },
    vouches: (key) => ring?.has(key) === true && isLive(key),
    async ready() {
      if ((await liveKeys()).size === 0) throw new Unavailable('key_set', 'refused')
    },
  }
}

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
