/**
 * Compares the target of a DPoP proof with the request: the `htu` claim (RFC 9449 section 4.3,
 * check 9).
 */

/** RFC 3986 section 2: a URI is ASCII, without spaces or backslashes. */
const HTTP_URI = /^https?:\/\/[\x21\x23-\x5b\x5d-\x7e]+$/i
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/
const UNRESERVED = /^[\w.~-]$/

/**
 * Reports whether `htu` names the target of a request to `url`, without query and fragment. Both
 * are normalised first (RFC 3986 sections 6.2.2 and 6.2.3): case of scheme and host, the default
 * port, dot segments, percent-encoding. The origin must be `publicOrigin`, because a Worker may
 * also be reachable by other names. On a loopback host, the request's own origin is accepted too.
 */
export function isTarget(htu: string, url: string, publicOrigin: string): boolean {
  if (!HTTP_URI.test(htu)) return false
  const claimed = URL.parse(htu)
  const requested = URL.parse(url)
  if (claimed === null || requested === null) return false
  if (claimed.username !== '' || claimed.password !== '') return false
  if (pathOf(claimed) !== pathOf(requested)) return false
  if (claimed.origin === publicOrigin) return true
  return LOOPBACK.test(requested.hostname) && claimed.origin === requested.origin
}

/** Returns the path with percent-encoding only where it is needed, in upper case. */
function pathOf({ pathname }: URL): string {
  return pathname.replace(/%[\da-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
    return UNRESERVED.test(character) ? character : encoded.toUpperCase()
  })
}
