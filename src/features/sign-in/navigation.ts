/** Requests with which a browser loads a page. */
import type { Received } from '../../access/tokens/token-cookie.ts'

const HTML = /\btext\/html\b/i
/** Longer than that of any browser. This runs before every guard. */
const MAX_ACCEPT_CHARACTERS = 1_024
/** A range that the client does not accept (RFC 9110 section 12.4.2). */
const REFUSED = /;\s*q=0(?:\.0{0,3})?\s*(?:;|$)/i

/**
 * Reports whether a browser loads a page, in a window and not in a frame. Browsers that do not send
 * `Sec-Fetch-Mode` ask for HTML by name.
 */
export function isNavigation(method: string, received: Received): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  if (!HTML.test(received.get('accept') ?? '')) return false
  const mode = received.get('sec-fetch-mode') ?? 'navigate'
  return mode === 'navigate' && (received.get('sec-fetch-dest') ?? 'document') === 'document'
}

/**
 * Reports whether a browser shows the response to a person, also that of a form. No program says so by
 * accident. A frame shows no page of the gateway.
 */
export function isShown(received: Received): boolean {
  if (received.get('sec-fetch-mode') !== 'navigate') return false
  if ((received.get('sec-fetch-dest') ?? 'document') !== 'document') return false
  const accept = received.get('accept') ?? ''
  if (accept.length > MAX_ACCEPT_CHARACTERS) return false
  return accept.split(',').some((range) => /^\s*text\/html\b/i.test(range) && !REFUSED.test(range))
}
