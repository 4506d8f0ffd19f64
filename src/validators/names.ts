/** Names that are used in tokens, headers and log lines. */

import * as z from 'zod/mini'
import { $ZodCheckRegex } from 'zod/v4/core'

/** Controls and separators of lines and paragraphs, which could end a header or log line. */
const UNPRINTABLE = '\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029'
/** White space at the end of a header value is removed: `alice ` would arrive as `alice`. */
const BLANK = ' \\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000\\ufeff'
/** Without classes such as `\s`, which JSON Schema tools in other languages read differently. */
const PRINTABLE = new RegExp(
  `^[^${UNPRINTABLE}${BLANK}](?:[^${UNPRINTABLE}]*[^${UNPRINTABLE}${BLANK}])?$`,
)

/** Printable ASCII without quote and backslash (RFC 6749 section 3.3). */
export const scopeName = z
  .string()
  .check(z.maxLength(256), z.regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be a scope token'))

/** Text of 1 to `maxChars` characters that is safe in a token, a header and a log line. */
export const name = (maxChars: number) =>
  z.string().check(
    z.minLength(1),
    z.maxLength(maxChars),
    new $ZodCheckRegex({
      check: 'string_format',
      format: 'regex',
      pattern: PRINTABLE,
      error: () => 'must be printable',
      // An empty text has one mistake. A check with `when` also runs for values that are no text.
      when: ({ value }) => typeof value === 'string' && value !== '',
    }),
    // A lone surrogate has no UTF-8 form, so two different names would become equal.
    z.refine((text) => text.isWellFormed(), 'must be printable'),
  )

export const issuerName = name(2_048)
export const tenantName = name(256)
export const roleNames = z.array(name(256)).check(z.maxLength(100))
export const scopeNames = z.array(scopeName).check(z.maxLength(100))

/** The permission of a route or a tool: `<thing>:<verb>`. Safe inside quotation marks. */
export const PERMISSION = /^[a-z0-9_-]+(:[a-z0-9_-]+)+$/i

/** A grant of a role: a permission, all below `<thing>:`, or everything. */
const PERMISSION_PATTERN = /^(\*|[a-z0-9_-]+(:[a-z0-9_-]+)*:([a-z0-9_-]+|\*))$/i
/** The name of a limit or a role. Stricter than the sf-string of `RateLimit` headers. */
export const LIMIT_NAME = /^[a-z][a-z0-9_-]{0,63}$/i

/** The permissions of each role. */
export const rolesSchema = z.record(
  z.string().check(z.regex(LIMIT_NAME)),
  z.array(
    z
      .string()
      .check(
        z.regex(PERMISSION_PATTERN, 'must be a permission pattern: orders:read, orders:* or *'),
      ),
  ),
)
