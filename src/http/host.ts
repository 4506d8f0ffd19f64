/** Hosts of requests, and patterns for them: `api.example.com`, or `*.example.com`. */

/** Labels of letters, digits and inner hyphens (RFC 1123 section 2.1). */
const PATTERN = /^(?:\*\.)?(?:(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!$)|$))+$/
/** Scheme and authority. An authority with user information has no host here. */
const AUTHORITY = /^https?:\/\/(\[[\da-f:.]+\]|[\w~-]+(?:\.[\w~-]+)*\.?)(?::\d*)?(?:[/?#]|$)/i

/** Reports whether a text is a host in lower case without a port, or `*.` and such a host. */
export const isHostPattern = (text: string): boolean => text.length <= 253 && PATTERN.test(text)

/**
 * Returns the pattern with one wildcard label for a host: `*.example.com` for `api.example.com`. A host
 * that begins with a dot has no first label, and is returned as it is: no pattern matches it.
 */
export const wildcardOf = (host: string): string => host.replace(/^[^.]+/, '*')

/** Reports whether `pattern` matches every host that `other` matches. Undefined matches all hosts. */
export const coversHost = (pattern: string | undefined, other: string | undefined): boolean =>
  pattern === undefined ||
  pattern === other ||
  (other !== undefined && pattern === wildcardOf(other))

/**
 * Returns the host of an absolute URL for comparison: in lower case, without the port and the dot of
 * the DNS root. Empty for an authority that has another form, such as a host with an empty label.
 */
export function hostOf(url: string): string {
  const [, host = ''] = AUTHORITY.exec(url) ?? []
  return host.toLowerCase().replace(/\.$/, '')
}
