/** The digest of the draws. */
import { createHash } from 'node:crypto'

/** Returns the base64url SHA-256 of a text's UTF-8. Bun and Deno have no `hash` in every version. */
export const secretDigest = (text: string): string =>
  createHash('sha256').update(text).digest('base64url')
