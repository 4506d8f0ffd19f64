/** Names that stand in tokens, headers and lines of a log. */
import * as z from 'zod'

/**
 * Control characters, line and paragraph separators would break out of a header or a log line;
 * halves of surrogate pairs have no UTF-8, so two names would become one.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u
/** White space at an end does not survive in a header: `alice ` would arrive as `alice`. */
const PADDED = /^\s|\s$/

const MAX_SCOPE_CHARS = 256

/** One name of a scope: printable ASCII without quote and backslash (RFC 6749 section 3.3). */
export const scopeName = z
  .string()
  .max(MAX_SCOPE_CHARS)
  .regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be a scope token')

/** Text of 1 to `maxChars` characters that can stand in a token, a header and a line of a log. */
export const name = (maxChars: number) =>
  z
    .string()
    .min(1)
    .max(maxChars)
    .refine((text) => !UNPRINTABLE.test(text) && !PADDED.test(text), 'must be printable')
