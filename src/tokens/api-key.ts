/** The format of API keys: recognizable, verifiable without a lookup, and impossible to guess. */

import * as z from 'zod/mini'
import { type RandomBytes, randomBytes } from '../crypto/random.ts'
import { name, roleNames, scopeNames } from '../validators/names.ts'
import type { Page, PageQuery } from '../validators/page.ts'
import { integer, wholeNumber } from '../validators/schema-parts.ts'

/** Lets scanners of repositories and logs recognize a key. */
const PREFIX = 'pk_'
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 43 characters out of 62 carry 256 bits. */
const SECRET_LENGTH = 43
/** 6 characters out of 62 carry the 32 bits of the checksum. */
const CHECKSUM_LENGTH = 6
const FORM = /^pk_[0-9A-Za-z]{49}$/
/** The largest multiple of 62 in a byte. Bytes from here on would favour some characters. */
const FAIR_BYTES = 248
/** The reversed polynomial of CRC-32 (ISO 3309, ITU-T V.42). */
const CRC_POLYNOMIAL = 0xedb88320

/**
 * Creates an API key: `pk_`, 43 random characters (256 bits), and 6 characters of CRC-32 over the
 * preceding ones. The checksum distinguishes a mistyped key from an ended one, without a lookup.
 */
export function newApiKey(random: RandomBytes = randomBytes): string {
  let text = PREFIX
  while (text.length < PREFIX.length + SECRET_LENGTH) {
    for (const byte of random(SECRET_LENGTH)) {
      if (byte < FAIR_BYTES && text.length < PREFIX.length + SECRET_LENGTH)
        text += ALPHABET.charAt(byte % ALPHABET.length)
    }
  }
  return text + checksum(text)
}

/** Reports whether a text is an API key with a correct checksum. Does NOT look it up. */
export function isApiKey(text: string): boolean {
  return looksLikeApiKey(text) && text.endsWith(checksum(text.slice(0, -CHECKSUM_LENGTH)))
}

/** Reports whether a text has the format of an API key. Does NOT check the checksum. */
export function looksLikeApiKey(text: string): boolean {
  return FORM.test(text)
}

/** Returns the CRC-32 of an ASCII text, in the alphabet of keys. */
function checksum(text: string): string {
  let crc = 0xffffffff
  for (let index = 0; index < text.length; index++) {
    crc ^= text.charCodeAt(index)
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? CRC_POLYNOMIAL : 0)
  }
  let rest = ~crc >>> 0
  let digits = ''
  for (let count = 0; count < CHECKSUM_LENGTH; count++) {
    digits = ALPHABET.charAt(rest % ALPHABET.length) + digits
    rest = Math.floor(rest / ALPHABET.length)
  }
  return digits
}

const MAX_API_KEY_SECONDS = 10 * 365 * 86_400

/** The body of `POST /-/admin/api-keys`. */
export const newApiKeySchema = z.strictObject({
  name: name(128),
  /** The gateway vouches for this subject. */
  subject: name(255),
  roles: z.optional(roleNames),
  scopes: z.optional(scopeNames),
  tenant: z.optional(name(256)),
  /** Absent: the key lives until an operator ends it. */
  expiresInSeconds: z.optional(wholeNumber(1, MAX_API_KEY_SECONDS)),
})

type NewApiKey = z.infer<typeof newApiKeySchema>

/** A replaced secret that is still valid. */
const oldSecretSchema = z.strictObject({
  tokenId: z.uuid(),
  hash: z.string(),
  issuedAtSeconds: integer(),
  untilSeconds: integer(),
})

export type OldSecret = z.infer<typeof oldSecretSchema>

/** The stored record of a key. It never contains the key. Times are seconds since the epoch. */
export const apiKeySchema = z.strictObject({
  /** UUIDv7. A rotation does not change it. */
  id: z.uuid(),
  name: z.string(),
  subject: z.string(),
  roles: z.array(z.string()),
  scopes: z.array(z.string()),
  tenant: z.nullable(z.string()),
  /** `Principal.tokenId` of requests with the present key. Each rotation changes it. */
  tokenId: z.uuid(),
  /** base64url SHA-256 of the present key. */
  hash: z.string(),
  createdAtSeconds: integer(),
  createdBy: z.string(),
  /** When the present key was created. */
  rotatedAtSeconds: integer(),
  expiresAtSeconds: z.nullable(integer()),
  /** Newest first. Absent: none. */
  oldSecrets: z.optional(z.array(oldSecretSchema)),
})

export type ApiKey = z.infer<typeof apiKeySchema>

/** A key with its secret, which is shown once. */
export interface IssuedApiKey {
  readonly key: ApiKey
  readonly secret: string
}

/**
 * An isolate caches a secret for up to five minutes with the expiry that it had then. So a secret
 * cannot expire earlier, unless it is revoked.
 */
export const MIN_GRACE_SECONDS = 300

export interface RotateOptions {
  /** Default 0: the old secrets end at once. */
  readonly graceSeconds?: number
  /** The second that revocation cutoffs are compared with. Default: now. */
  readonly issuedAtSeconds?: number | undefined
}

/** Port: the API keys. Throws `Unavailable` if the store cannot read or write. */
export interface ApiKeys {
  /** `issuedAtSeconds` is the second that revocation cutoffs are compared with. Default: now. */
  create(key: NewApiKey, createdBy: string, issuedAtSeconds?: number): Promise<IssuedApiKey>
  find(id: string): Promise<ApiKey | undefined>
  list(page: PageQuery): Promise<Page<ApiKey>>
  /**
   * Replaces the secret. The old ones stay valid for `graceSeconds`, which must be 0 or at least
   * {@link MIN_GRACE_SECONDS}. Returns undefined if the key does not exist. Throws `Denied`
   * (`conflict`) if other requests keep changing it; `end` does so too.
   */
  rotate(id: string, options?: RotateOptions): Promise<IssuedApiKey | undefined>
  /**
   * Ends a key with all its secrets in every isolate from the next request on. False: the key does
   * not exist.
   */
  end(id: string): Promise<boolean>
}
