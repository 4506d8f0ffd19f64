/** Redirect URIs of clients (RFC 6749 section 3.1.2, RFC 8252 section 7). */
import * as z from 'zod/mini'

const MAX_CHARS = 2_048
/** Visible ASCII without characters that a header, a page or a Content-Security-Policy could misread. */
const PLAIN = /^[\x21\x23-\x26\x28-\x2b\x2d-\x3a\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]+$/
/** A host with `*` would be a pattern in the Content-Security-Policy of the consent page. */
const HTTPS = /^https:\/\/[^/?@*]+(?:[/?]|$)/
/** A private-use scheme contains a domain name in reverse order (RFC 8252 section 7.1). */
const PRIVATE_SCHEME = /^[a-z][a-z\d+-]*(?:\.[a-z\d+-]+)+:$/
const LOOPBACK_HOSTS: readonly string[] = ['127.0.0.1', '[::1]', 'localhost']

/** How a redirect reaches its client. Only `https` proves which client receives it. */
export type RedirectKind = 'https' | 'loopback' | 'private'

/**
 * Returns the kind of a redirect URI. Undefined for a URI that no client may have: one with a
 * fragment or user information, with `http` to another host than this machine, or with another
 * scheme. `schemes` are private-use schemes without a domain name that the policy permits.
 */
export function classifyRedirect(
  text: string,
  schemes: readonly string[] = [],
): RedirectKind | undefined {
  if (text.length > MAX_CHARS || !PLAIN.test(text) || text.includes('#')) return undefined
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return undefined
  const { protocol } = url
  // The text must be what every parser reads: `https:example.com` has no slashes.
  if (protocol === 'https:') return HTTPS.test(text) ? 'https' : undefined
  if (protocol === 'http:') return isLoopback(url, text) ? 'loopback' : undefined
  const isKnown = PRIVATE_SCHEME.test(protocol) || schemes.includes(protocol.slice(0, -1))
  return isKnown ? 'private' : undefined
}

const isLoopback = ({ hostname }: URL, text: string): boolean =>
  LOOPBACK_HOSTS.includes(hostname) && /^http:\/\/[^/?@]+/.test(text)

/** Without the port: `http://127.0.0.1:51004/callback` is `http://127.0.0.1/callback`. */
const PORT = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)):\d{1,5}(?=[/?]|$)/

/** Returns a loopback redirect URI without its port, which the client chooses for each request. */
export const withoutLoopbackPort = (text: string): string => text.replace(PORT, '$1')

/**
 * Reports whether `text` is one of the registered redirect URIs: equal in every character, except
 * the port of a loopback redirect (RFC 8252 section 7.3, RFC 9700 section 2.1).
 */
export function isRegisteredRedirect(text: string, registered: readonly string[]): boolean {
  return (
    registered.includes(text) ||
    registered.map(withoutLoopbackPort).includes(withoutLoopbackPort(text))
  )
}

export const redirectUriMessage =
  'must be https, http to 127.0.0.1, [::1] or localhost, or a private scheme ' +
  'such as com.example.app:/callback; without a fragment'

/** Schemes that browsers handle themselves. A redirect to one of them could run a script. */
const OF_BROWSERS =
  /^(?:about|blob|chrome|chrome-extension|data|file|filesystem|ftp|http|https|intent|javascript|mailto|resource|sms|tel|vbscript|view-source|ws|wss)$/

const isPrivate = (scheme: string): boolean => scheme !== '' && !OF_BROWSERS.test(scheme)

/** Returns the private-use scheme of a URI, in a list. An empty list: it has none. */
export const schemeOf = (text: string): readonly string[] =>
  [/^([a-z][a-z\d+.-]*):/.exec(text)?.[1] ?? ''].filter(isPrivate)

/** A private-use scheme that a policy permits. */
export const privateScheme = z
  .string()
  .check(
    z.regex(/^[a-z][a-z\d+.-]{0,63}$/, 'must be a scheme in lower case, without the colon'),
    z.refine(isPrivate, 'is a scheme of browsers'),
  )
