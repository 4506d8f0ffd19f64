/** Schemas of the origins of a policy, and of the fields of its routes that use them. */
import * as z from 'zod/mini'
import { isHostPattern } from '../../http/host.ts'
import { isPathPattern } from '../../http/path-pattern.ts'
import { superRefine } from '../../validators/checks.ts'
import { credentialsSchema } from '../../validators/credentials.ts'
import { isReserved } from '../../validators/request-header.ts'
import { nonEmpty, wholeNumber } from '../../validators/schema-parts.ts'
import { httpUrl } from '../../validators/variables.ts'

/** The names appear in URNs, log lines and metrics. */
const NAME = /^[a-z][a-z0-9-]{0,62}$/
const MAX_RETRIES = 3
const MAX_TIMEOUT_MS = 600_000

/** A record whose names are checked. The schema of keys of `z.record` would hide the message. */
function namedRecord<Value extends z.core.$ZodType>(
  value: Value,
  mistakeIn: (name: string) => string | undefined,
) {
  return z.record(z.string(), value).check(
    superRefine((record, context) => {
      for (const name of Object.keys(record)) {
        const message = mistakeIn(name)
        if (message !== undefined) context.addIssue({ path: [name], message })
      }
    }),
  )
}

const originUrl = httpUrl.check(
  z.refine((url) => !/[?#]/.test(url), 'must have no query or fragment'),
)

const origin = z
  .strictObject({
    url: z.optional(originUrl),
    variable: z.optional(
      z
        .string()
        .check(z.regex(/^ORIGIN_URL_[A-Z0-9_]+$/, 'must be a name such as ORIGIN_URL_ORDERS')),
    ),
    binding: z.optional(
      z.string().check(z.regex(/^[A-Z][A-Z0-9_]*$/, 'must be a name such as ORDERS')),
    ),
    audience: z.optional(nonEmpty),
    timeoutMs: z.optional(wholeNumber(1, MAX_TIMEOUT_MS)),
    retries: z.optional(
      z.strictObject({
        max: z.optional(wholeNumber(1, MAX_RETRIES)),
        percent: z.optional(wholeNumber(1, 100)),
      }),
    ),
    breaker: z.optional(z.enum(['route', 'origin'])),
    credentials: z.optional(credentialsSchema),
    canary: z.optional(
      z.strictObject({
        origin: z.string(),
        percent: z
          .number()
          .check(
            z.refine(
              (percent) => percent >= 0 && percent <= 100 && Number.isInteger(percent * 100),
              'must be from 0 to 100, in steps of 0.01',
            ),
          ),
      }),
    ),
  })
  .check(
    z.refine(({ url, variable, binding }) => (url ?? variable ?? binding) !== undefined, {
      error: 'requires url, variable or binding',
    }),
  )

export const originsSchema = namedRecord(origin, (name) =>
  NAME.test(name) ? undefined : 'must be a name of lower-case letters, digits and hyphens: orders',
)

export const originVariable = originUrl

/** Visible ASCII, and spaces inside: no line break. */
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

const headerChanges = (isFixed: (name: string) => boolean) => {
  function mistakeIn(name: string): string | undefined {
    if (!/^[a-z0-9-]+$/i.test(name)) return 'must contain only letters, digits and hyphens'
    return isFixed(name.toLowerCase())
      ? 'cannot be changed: only the gateway may set it'
      : undefined
  }
  const value = z.string().check(z.regex(HEADER_VALUE, 'must be visible ASCII in one line'))
  const name = z.string().check(
    superRefine((given, context) => {
      const mistake = mistakeIn(given)
      if (mistake !== undefined) context.addIssue(`${given} ${mistake}`)
    }),
  )
  return z.optional(
    z.strictObject({
      set: z.optional(namedRecord(value, mistakeIn)),
      remove: z.optional(z.array(name)),
    }),
  )
}

/** The fields of `OriginRouting`. `isWithheld`: the gateway does not pass on this response header. */
export const routingSchema = (isWithheld: (name: string) => boolean) =>
  z.object({
    origin: z.optional(z.string()),
    host: z.optional(
      z
        .string()
        .check(
          z.refine(
            isHostPattern,
            'must be a host in lower case without a port, such as api.example.com or *.example.com',
          ),
        ),
    ),
    stripPrefix: z.optional(
      z
        .string()
        .check(
          z.refine(
            (prefix) => isPathPattern(prefix) && !/[/*]$/.test(prefix),
            'must be the beginning of a path, such as /v1',
          ),
        ),
    ),
    rewrite: z.optional(
      z.string().check(z.refine(isPathPattern, 'must be a path such as /internal/orders/:id')),
    ),
    requestHeaders: headerChanges(isReserved),
    responseHeaders: headerChanges((name) => isWithheld(name) || FIXED.has(name)),
    audience: z.optional(nonEmpty),
  })

/** Response headers that describe the message, or separate callers. */
const FIXED: ReadonlySet<string> = new Set([
  'content-length',
  'content-encoding',
  'vary',
  'www-authenticate',
  'set-cookie',
  'x-content-type-options',
])
