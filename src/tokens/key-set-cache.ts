/** The shared cache of key sets, which all isolates of one data centre use. */

/** A downloaded key set, as text. The reader checks it like a download. */
export interface StoredKeySet {
  readonly text: string
  /** Milliseconds since the epoch: when its download began. */
  readonly fetchedAtMs: number
}

/** Port: a cache that outlives an isolate. It may lose entries, and its content is not trusted. */
export interface KeySetCache {
  read(uri: string): Promise<StoredKeySet | undefined>
  write(uri: string, stored: StoredKeySet, ttlSeconds: number): Promise<void>
}

const FETCHED_AT = 'x-fetched-at'
/** A name that no visitor can request and no origin can serve (RFC 6761 section 6.4). */
const NAMESPACE = 'https://key-sets.portcullis.invalid/'

/**
 * Creates a cache over the Cache API of Workers. Returns undefined on platforms without
 * `caches.default`. Only Workers of the same zone can write there, so an entry is as trustworthy as
 * the zone's own code.
 */
export function edgeKeySetCache(): KeySetCache | undefined {
  const cache = (globalThis as { caches?: { readonly default?: Cache } }).caches?.default
  if (cache === undefined) return undefined
  const keyOf = (uri: string) => `${NAMESPACE}${encodeURIComponent(uri)}`
  return {
    async read(uri) {
      const response = await cache.match(keyOf(uri))
      if (response === undefined) return undefined
      return {
        text: await response.text(),
        fetchedAtMs: Number(response.headers.get(FETCHED_AT) ?? Number.NaN),
      }
    },
    async write(uri, { text, fetchedAtMs }, ttlSeconds) {
      const headers = {
        'cache-control': `max-age=${ttlSeconds}`,
        'content-type': 'application/json',
        [FETCHED_AT]: String(fetchedAtMs),
      }
      await cache.put(keyOf(uri), new Response(text, { headers }))
    },
  }
}
