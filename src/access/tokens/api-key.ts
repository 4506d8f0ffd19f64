/** The format of API keys: recognizable, verifiable without a lookup, and impossible to guess. */

import { type RandomBytes, randomBytes } from '../../crypto/random.ts'

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

/** `pk_` and 6 characters: enough to recognize a key, and 222 bits remain unknown. */
const SHOWN_LENGTH = 9

/** Returns the first characters of an API key, which lists show. */
export const shownPrefixOf = (apiKey: string): string => apiKey.slice(0, SHOWN_LENGTH)

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
