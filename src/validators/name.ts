/** Names that stand in tokens, headers and lines of a log. */
import * as z from 'zod'

/**
 * Control characters, line and paragraph separators would break out of a header or a log line;
 * halves of surrogate pairs have no UTF-8, so two names would become one.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u
/** White space at an end does not survive in a header: `alice ` would arrive as `alice`. */
const PADDED = /^\s|\s$/

/** Text of 1 to `maxChars` characters that can stand in a token, a header and a line of a log. */
export const name = (maxChars: number) =>
  z
    .string()
    .min(1)
    .max(maxChars)
    .refine((text) => !UNPRINTABLE.test(text) && !PADDED.test(text), 'must be printable')
