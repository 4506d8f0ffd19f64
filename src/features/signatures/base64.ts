/** Reads texts that are encoded in Base64 (RFC 4648), as many APIs decode them. */

/** Shorter texts are words, and decode to too little for an attack. */
const MIN_CHARS = 12
/** First characters of an encoded text that starts with a printable character or white space. */
const START = /^[CDI-Za-f]/
/** Both alphabets. A form decodes `+` to a space. */
const BASE64 = /^[\w+/ -]*={0,2}$/
const HEAD_CHARS = 12
/** Words and identifiers seldom decode to this. */
const PRINTABLE = /^[\t\n\r\x20-\x7e]*$/

/**
 * Returns the text that a text in Base64 encodes, one character for each byte; undefined if it is no
 * Base64, or encodes no text.
 */
export function decodedBase64(text: string): string | undefined {
  if (text.length < MIN_CHARS || !START.test(text)) return undefined
  const head = decoded(text.slice(0, HEAD_CHARS))
  if (head === undefined || !PRINTABLE.test(head) || !BASE64.test(text)) return undefined
  return decoded(text)
}

function decoded(text: string): string | undefined {
  const standard = text.replace(/[- _]/g, (character) => (character === '_' ? '/' : '+'))
  try {
    return atob(standard)
  } catch {
    return undefined
  }
}
