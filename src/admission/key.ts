/** Parts of storage keys: any string in, no collision and no separator out. */
import { sha256 } from '../tokens/sha256.ts'

/** Longer parts are hashed, so that a key is bounded whatever a caller sends. */
const MAX_PART_CHARACTERS = 160
/** Percent-encoding leaves these alone, but they mean something in Redis patterns or here. */
const UNESCAPED_SPECIALS = /[!'()*~]/g

/**
 * Makes one part of a key out of untrusted text: percent-encoded (so `:` and `*` never appear),
 * or `~` and the base64url SHA-256 of the text where that is longer than 160 characters or the
 * text is not well-formed Unicode. `~` itself is always encoded, so the two never meet: different
 * texts give different parts.
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
  // JSON escapes lone surrogates, which UTF-8 would all turn into one replacement character.
  return `~${await sha256(JSON.stringify(text))}`
}
