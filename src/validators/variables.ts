/** Parsers of single environment variables. */

import * as z from 'zod/mini'
import { isGuessable } from '../crypto/weak-keys.ts'
import { JsonRefused, parseStrictJson } from '../http/strict-json.ts'
import { last, superRefine } from './checks.ts'
import { converted } from './schema-parts.ts'

const NOT_HTTP = 'must be an http or https URL'
const WITH_CREDENTIALS = 'must not contain credentials'

/** An absolute http or https URL without credentials. `z.url()` would be larger, and is for every protocol. */
export const httpUrl = z.string(NOT_HTTP).check(
  z.trim(),
  superRefine<string>((url, { addIssue }) => {
    const message = isHttpUrl(url) ? hasCredentials(url) && WITH_CREDENTIALS : NOT_HTTP
    if (message) addIssue(last(message))
  }),
)

/** The parser of URLs ignores tabs and ends of lines. A value with them is not the URL that it looks like. */
function isHttpUrl(text: string): boolean {
  return /^https?:\/\//i.test(text) && !/[\t\n\r]/.test(text) && URL.canParse(text)
}

function hasCredentials(url: string): boolean {
  const { username, password } = new URL(url)
  return username !== '' || password !== ''
}

/** The origin of pages (RFC 6454), without a path and without wildcards. */
export const webOrigin = z
  .string()
  .check(
    z.refine(
      (value) => /^https?:[^*]+$/.test(value) && URL.parse(value)?.origin === value,
      'must be an origin such as https://app.example',
    ),
  )

const MAX_PORT = 65_535

/** The port that a server listens on. 0: any free one. */
export const listeningPort = () =>
  converted(
    z
      .string()
      .check(
        z.refine(
          (text) => /^\d{1,5}$/.test(text) && Number(text) <= MAX_PORT,
          `must be a number from 0 to ${MAX_PORT}`,
        ),
      ),
    Number,
  )

/** Whether the URL is https, or http that does not leave the machine (RFC 8252 section 8.3). */
export function isPrivateLine(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'https:' || /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}

/** A URL to which tokens or secrets are sent, or that decides which tokens are valid. */
export const privateUrl = httpUrl.check(
  z.refine(isPrivateLine, 'must be https, unless it is on a loopback address'),
)

/** Deeper than any configuration. */
const MAX_JSON_DEPTH = 16

/** The usual mistake in a file of variables: its reader keeps the outer quotes, or removes the inner ones. */
const hint = (text: string): string =>
  /^'|^\[?\{\w/.test(text) ? ' with double quotes, and none around it' : ''

/** JSON without duplicate member names. A byte order mark before it is white space. */
export const json = z.pipe(
  z.string(),
  z.transform((text, context) => {
    try {
      return parseStrictJson(text.trim(), { maxDepth: MAX_JSON_DEPTH })
    } catch (error) {
      const twice = error instanceof JsonRefused && error.check === 'duplicate_name'
      const message = twice ? 'has a duplicate member name' : `must be valid JSON${hint(text)}`
      context.issues.push({ code: 'custom', message, input: text })
      return z.NEVER
    }
  }),
)

export const MIN_TIMEOUT_MS = 10
/** Also bounds the age of a decision when its response arrives. */
export const MAX_TIMEOUT_MS = 5_000

/** The timeout of calls to a dependency, in milliseconds. */
export const callTimeout = converted(
  z.string().check(z.regex(/^\d{1,5}$/, 'must be a whole number')),
  Number,
).check(
  z.refine(
    (ms) => ms >= MIN_TIMEOUT_MS && ms <= MAX_TIMEOUT_MS,
    `must be from ${MIN_TIMEOUT_MS} to ${MAX_TIMEOUT_MS}`,
  ),
)

/**
 * The prefix of all keys in Redis. The colon at its end is its only one, so that no key of one prefix
 * begins with another prefix.
 */
export const keyPrefix = z
  .string()
  .check(
    z.regex(
      /^[a-z][a-z0-9-]{0,31}:$/,
      'must be at most 32 lower-case letters, digits and hyphens, then a colon, such as pc-staging:',
    ),
  )

/** Operators need the full address to ban one client without its neighbors. */
export const DEFAULT_AUDIT_ADDRESSES = 'full'

/** The full address, its network, or a keyed hash. */
export const auditAddresses = z.enum(['full', 'truncated', 'hashed'], {
  error: 'must be full, truncated or hashed',
})

export interface AuditAddresses {
  readonly form: z.output<typeof auditAddresses>
  /** For `hashed`: the UTF-8 of this text is the key. */
  readonly key: string
}

/** 256 bits if each character has 8 bits; base64 of 32 random bytes has 44 characters. */
const MIN_KEY_CHARACTERS = 32

/** The key must be secret: hashes of all IPv4 addresses can be computed in minutes with it. */
export const auditAddressKey = z.string().check(
  z.minLength(MIN_KEY_CHARACTERS, `must have at least ${MIN_KEY_CHARACTERS} characters`),
  z.refine(
    (key) => !isGuessable(new TextEncoder().encode(key)),
    'must be random, not a placeholder or a pattern',
  ),
)
