/** Encodes untrusted text as one part of a storage key, without collisions. */
import { sha256 } from '../crypto/sha256.ts'

const MAX_PART_CHARACTERS = 160
/** Not escaped by `encodeURIComponent`, but they have a meaning in Redis patterns or here. */
const UNESCAPED_SPECIALS = /[!'()*~]/g

/**
 * Encodes untrusted text as one part of a storage key. The text is percent-encoded, so `:` and `*`
 * never appear in the part. A text is hashed if it is not well-formed Unicode, or if it or its
 * encoded form has more than 160 characters, so that keys have a bounded length. The part is then `~` and the base64url SHA-256 of the
 * text as JSON. `~` itself is always encoded, so the two forms never collide: different texts give
 * different parts.
 */
export function keyPart(text: string): string | Promise<string> {
  if (text.length <= MAX_PART_CHARACTERS && text.isWellFormed()) {
    const part = encodeURIComponent(text).replace(UNESCAPED_SPECIALS, percentEncoded)
    if (part.length <= MAX_PART_CHARACTERS) return part
  }
  return hashedPart(text)
}

function percentEncoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}

async function hashedPart(text: string): Promise<string> {
  // JSON escapes lone surrogates. UTF-8 would turn all of them into the same replacement character.
  return `~${await sha256(JSON.stringify(text))}`
}
