/** Forms the URL of a request without changing how its path and its query were sent. */

import { Denied } from '../errors.ts'
import { createLruMap } from '../isolate/lru-map.ts'

/** A host and a port. Any other `Host` could move the end of the authority in a URL. */
const HOST = /^(?:[\w.~-]+|\[[\d.:a-f]+\])(?::\d{1,5})?$/i
/** A name of 253 characters, and a port. */
const MAX_HOST_CHARS = 259
/** Most requests have one of a few hosts, so each host is parsed once. */
const accepted = createLruMap<string, true>({ max: 100 })

/** Whether a text is a host that `new URL()` reads: no port above 65535, no IPv4 address of five parts. */
function isHost(text: string): boolean {
  if (accepted.get(text)) return true
  if (text.length > MAX_HOST_CHARS || !HOST.test(text) || !URL.canParse(`http://${text}`))
    return false
  accepted.set(text, true)
  return true
}

/**
 * Returns the URL of a request. Throws `Denied` (`malformed_request`) for an authority or a target that
 * would move the end of the authority. Does NOT check the characters of the target.
 *
 * @param target in origin form (RFC 9112 section 3.2.1): `/orders?limit=1`
 */
export function requestUrl(scheme: 'http' | 'https', authority: string, target: string): string {
  if (!isHost(authority) || !target.startsWith('/') || target.includes('#'))
    throw new Denied({ code: 'malformed_request', check: 'target' })
  return `${scheme}://${authority}${target}`
}
