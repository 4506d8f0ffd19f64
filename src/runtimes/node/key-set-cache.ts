/** Keeps the key sets of issuers for the gateways of one process. */
import type { KeySetCache, StoredKeySet } from '../../access/tokens/key-set-source.ts'

/**
 * Creates the cache. It has one entry for each issuer of the environment, so it needs no bound. After a
 * reload, the gateway of the new policy finds the key sets here: an issuer that is down at that moment
 * changes nothing.
 */
export function createProcessKeySetCache(): KeySetCache {
  const sets = new Map<string, StoredKeySet>()
  return {
    read: async (key) => sets.get(key),
    async write(key, stored) {
      sets.set(key, stored)
    },
  }
}
