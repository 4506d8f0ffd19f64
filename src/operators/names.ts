/** Names that operators write, as strict as those in tokens are. */
import * as z from 'zod'

/** Control characters, separators of lines and paragraphs, halves of surrogate pairs. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u
/** No token could have it: white space at an end does not survive in a header. */
const PADDED = /^\s|\s$/
/** RFC 6749 section 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/
const MAX_NAMES = 100
const MAX_ROLE_CHARS = 256
const MAX_ISSUER_CHARS = 2_048

/** Text of 1 to `maxChars` characters that can stand in a token, a header and a line of a log. */
export const name = (maxChars: number) =>
  z
    .string()
    .min(1)
    .max(maxChars)
    .refine((text) => !UNPRINTABLE.test(text) && !PADDED.test(text), 'must be printable')

export const issuerName = name(MAX_ISSUER_CHARS)
export const roleNames = z.array(name(MAX_ROLE_CHARS)).max(MAX_NAMES)
export const scopeNames = z.array(z.string().regex(SCOPE, 'a scope token')).max(MAX_NAMES)
