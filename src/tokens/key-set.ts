/** Where the keys of an issuer come from. */
import type { JSONWebKeySet } from 'jose'
import { Misconfigured, Unavailable } from '../errors.ts'
import type { Algorithm } from '../validators/jwk.ts'
import { importKeys, type KeyHint, type KeyRing, keyFor, type VerificationKey } from './key-ring.ts'
import type { WaitUntil } from './principal.ts'
import { rejected } from './rejection.ts'

/** Port: the keys of one issuer. */
export interface KeySet {
  /**
   * The key that a token names. Throws `Denied` (`kid_unknown`, `kid_missing`, `key_algorithm`) if
   * there is none, and `Unavailable` if nobody can tell whether there is. `waitUntil` keeps work
   * alive that this request starts and need not wait for.
   */
  find(hint: KeyHint, waitUntil?: WaitUntil): Promise<VerificationKey>
  /** Whether a key that was found before still counts. No I/O; false when in doubt. */
  vouches(key: VerificationKey): boolean
  /** Resolves when there are keys; throws `Unavailable` when there are none to be had. */
  ready(waitUntil?: WaitUntil): Promise<void>
}

/**
 * A set that stands in the configuration: never fetched, never stale. A key of it that has an `exp`
 * ends by the clock, and what was verified with it ends with it.
 */
export function createInlineKeySet(
  jwks: JSONWebKeySet,
  algorithms: readonly Algorithm[],
  now: () => number = Date.now,
): KeySet {
  let ring: KeyRing | undefined
  // Requests that begin together each import the keys, and the first result stays: on Workers
  // they must not await one another's promises.
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
      if (key === undefined) throw rejected('kid_unknown')
      return key
    },
    vouches: (key) => ring?.has(key) === true && isLive(key),
    async ready() {
      if ((await liveKeys()).size === 0) throw new Unavailable('key_set', 'refused')
    },
  }
}
