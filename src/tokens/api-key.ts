/** The form of API keys: recognisable, checkable without asking anybody, and unguessable. */
import { type RandomBytes, randomBytes } from './random.ts'

/** How scanners of repositories and logs know one. */
const PREFIX = 'pk_'
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 43 characters of 62 are 256 bits. */
const SECRET_LENGTH = 43
/** 6 characters of 62 hold the 32 bits of the checksum. */
const CHECKSUM_LENGTH = 6
const FORM = /^pk_[0-9A-Za-z]{49}$/
/** The largest multiple of 62 that a byte can reach: bytes above it would favour some characters. */
const FAIR_BYTES = 248
/** The reversed polynomial of CRC-32 (ISO 3309, ITU-T V.42). */
const CRC_POLYNOMIAL = 0xedb88320

/**
 * Makes an API key: `pk_`, 43 random characters (256 bits), and 6 of CRC-32 over what precedes
 * them. The checksum is no secret and no proof: it tells a key that was cut off or mistyped from one
 * that is not known any more, without a look-up.
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

/** Whether a text has the form of an API key, and its checksum is right. Nothing is looked up. */
export function isApiKey(text: string): boolean {
  return looksLikeApiKey(text) && text.endsWith(checksum(text.slice(0, -CHECKSUM_LENGTH)))
}

/** Whether a text has the form of an API key, whatever its checksum says. */
export function looksLikeApiKey(text: string): boolean {
  return FORM.test(text)
}

/** CRC-32 of ASCII, written with the alphabet of keys, most significant first. */
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
