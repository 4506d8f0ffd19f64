/** Browser sessions: the reference in the cookie, and what the session says about the login. */
import { base64url } from 'jose'
import { createCookieReader, type Received } from '../../access/tokens/token-cookie.ts'
import { drawnSecret } from '../../crypto/drawn.ts'
import { type RandomBytes, randomBytes } from '../../crypto/random.ts'

/**
 * The prefix makes browsers accept the cookie only from this host, over TLS and for all paths. Other
 * hosts of the domain cannot set it.
 */
export const SESSION_COOKIE = '__Host-portcullis-session'

const REFERENCE_BYTES = 32
/** Scanners recognize the prefix. Canonical: the unused bits of the last character must be zero. */
const SESSION_REFERENCE = /^pcb_[\w-]{42}[AEIMQUYcgkosw048]$/

const read = createCookieReader(SESSION_COOKIE)

/** Creates a reference: `pcb_` and 256 unpredictable bits. */
export const newSessionReference = (random: RandomBytes = randomBytes): string =>
  sessionReference(random(REFERENCE_BYTES))

/** Returns the reference of a secret, or of an attempt to draw it. */
export const sessionReference = (secret: Uint8Array, attempt = 0): string =>
  `pcb_${base64url.encode(drawnSecret(secret, attempt))}`

/**
 * Returns the reference in the cookie of a request. Undefined without one, and for a text of another
 * form. Throws `Denied` (`ambiguous_credentials`) for more than one cookie of this name.
 */
export function readSession(received: Received): string | undefined {
  const text = read(received)
  return text !== undefined && SESSION_REFERENCE.test(text) ? text : undefined
}

/** Returns the value of `Set-Cookie` for a cookie that lives until the browser ends. */
export const setCookie = (name: string, value: string): string =>
  `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=Lax`

export const removeCookie = (name: string): string => `${setCookie(name, '')}; Max-Age=0`
