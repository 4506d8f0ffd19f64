/** Limits as a user writes them: an object, or a text such as `100/min`. */
import * as z from 'zod/mini'
import { superRefine } from './checks.ts'
import { featureSchema } from './feature.ts'
import { leaseMistake, leaseSchema } from './lease.ts'
import { modeSchema } from './mode.ts'
import { LIMIT_NAME } from './names.ts'
import { integer, wholeNumber, withShorthand } from './schema-parts.ts'

const UNIT_SECONDS = { s: 1, min: 60, h: 3_600, d: 86_400 } as const

type Unit = keyof typeof UNIT_SECONDS

/** Requests per time: `100/min`, `30/60s`, `1000/h` or `5000/d`. Counts by subject, and fails closed. */
export type LimitText = `${number}/${Unit}` | `${number}/${number}${Unit}`

const LIMIT_TEXT = /^([1-9]\d*)\/([1-9]\d*)?(s|min|h|d)$/

/** Defaults for the fields that a limit in the form of text does not contain. */
const TEXT_DEFAULTS = { by: 'subject', onUnavailable: 'deny' } as const

/** Returns the limit that a text describes, or undefined if it describes none. */
export function limitInText(text: string) {
  const [, limit, count = '1', unit] = LIMIT_TEXT.exec(text) ?? []
  if (unit === undefined) return undefined
  const windowSeconds = Number(count) * UNIT_SECONDS[unit as Unit]
  return { limit: Number(limit), windowSeconds, ...TEXT_DEFAULTS }
}

export const limitWindow = {
  limit: wholeNumber(1, 1_000_000_000),
  windowSeconds: wholeNumber(1, 86_400),
}

export const limitBy = z.union([
  z.enum(['key', 'subject', 'client', 'tenant', 'address']),
  z.custom<(...of: never) => string>(
    (value) => typeof value === 'function',
    'must be key, subject, client, tenant, address or a function',
  ),
])

export const onUnavailable = z.enum(['deny', 'allow'], { error: "must be 'deny' or 'allow'" })

const limitObject = z
  .strictObject({
    ...limitWindow,
    by: limitBy,
    onUnavailable,
    mode: z.optional(modeSchema),
    engine: z.optional(withShorthand('exact', undefined, z.optional(featureSchema('upstash')))),
    cost: z.optional(integer().check(z.minimum(1))),
    lease: z.optional(leaseSchema),
  })
  .check(
    z.refine(({ cost = 1, limit }) => cost <= limit, { error: 'cost must not exceed the limit' }),
    z.refine(({ cost = 1, engine }) => cost === 1 || engine === undefined, {
      error: 'a cost other than 1 requires exact windows; remove engine',
    }),
    superRefine((limit, context) => {
      const mistake = leaseMistake(limit)
      if (mistake !== undefined)
        context.addIssue({ code: 'custom', path: ['lease'], message: mistake })
    }),
  )

const limitSchema = z.pipe(
  z.transform((value, context) => {
    // The result of plans() or quotas(), which checks its limits itself.
    if (typeof (value as { limits?: unknown } | null)?.limits === 'function')
      return limitInText('1/s')
    if (typeof value !== 'string') return value
    const limit = limitInText(value)
    if (limit !== undefined) return limit
    const message = 'must be an object, or a text such as 100/min, 30/60s or 1000/h'
    context.issues.push({ code: 'custom', message, input: value })
    return z.NEVER
  }),
  limitObject,
)

export const limitsSchema = z.record(z.string().check(z.regex(LIMIT_NAME)), limitSchema)
