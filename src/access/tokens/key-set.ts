import type { JSONWebKeySet } from 'jose'
import { Unavailable } from '../../errors.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import type { Algorithm } from '../../validators/jwk.ts'
import {
  type IgnoredKey,
  importKeys,
  type KeyHint,
  type KeyRing,
  keyFor,
  keyNotFound,
  type VerificationKey,
} from './key-ring.ts'

/** Port: the keys of one issuer. */
export interface KeySet {
  /**
   * Returns the key that a token names. Throws `Denied` (`kid_unknown`, `kid_missing`,
   * `key_algorithm`) if there is no such key, and `Unavailable` if the keys cannot be loaded.
   */
  find(hint: KeyHint, waitUntil?: WaitUntil): Promise<VerificationKey>
  /** Reports whether a key that was found before is surely still valid. No I/O. */
  isCurrent(key: VerificationKey): boolean
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
  now: () => number = () => Date.now(),
): KeySet {
  let ring: KeyRing | undefined
  let ignored: readonly IgnoredKey[] = []
  // Concurrent first requests each import the keys, and the first result is kept. On Workers, they
  // must not await one another's promises.
  const load = async (): Promise<KeyRing> => {
    const imported = await importKeys(jwks, algorithms)
    if (imported === undefined || imported.ring.size === 0) {
      throw new Unavailable('key_set', 'malformed')
    }
    ring ??= imported.ring
    ignored = imported.ignored
    return ring
  }
  const isLive = ({ expiresAtSeconds }: VerificationKey) =>
    expiresAtSeconds === undefined || now() < expiresAtSeconds * 1000
  const liveKeys = async (): Promise<KeyRing> =>
    new Set([...(ring ?? (await load()))].filter(isLive))
  return {
    async find(hint) {
      const key = keyFor(await liveKeys(), hint, ignored)
      if (key === undefined) throw keyNotFound(hint, ignored)
      return key
    },
    isCurrent: (key) => ring?.has(key) === true && isLive(key),
    async ready() {
      if ((await liveKeys()).size === 0) throw new Unavailable('key_set', 'refused')
    },
  }
}
