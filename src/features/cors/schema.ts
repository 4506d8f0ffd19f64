/** Schema of the CORS rules of a route. */
import * as z from 'zod/mini'
import { wholeNumber } from '../../validators/schema-parts.ts'
import { webOrigin } from '../../validators/variables.ts'

const WILDCARD = /^(https?:\/\/)\*\./

/** An origin, or one with `*` in place of the first label of its host. */
const originPattern = z
  .string()
  .check(
    z.refine(
      (value) => webOrigin.safeParse(value.replace(WILDCARD, '$1a.')).success && isOwned(value),
      'must be an origin such as https://app.example.com or https://*.example.com',
    ),
  )

/** `https://*.com` would allow the pages of anyone. */
const isOwned = (value: string): boolean =>
  !WILDCARD.test(value) || new URL(value.replace(WILDCARD, '$1')).hostname.includes('.')

/** RFC 9110 section 5.1. In CORS, `*` stands for all names. */
const headerName = z
  .string()
  .check(z.regex(/^[!#$%&'+.^_`|~\w-]+$/, 'must be the name of a header; "*" is not supported'))

export const corsSchema = z
  .strictObject({
    origins: z.union([z.literal('*'), z.array(originPattern).check(z.minLength(1))]),
    credentials: z.optional(z.boolean()),
    allowHeaders: z.optional(z.array(headerName)),
    exposeHeaders: z.optional(z.array(headerName)),
    maxAgeSeconds: z.optional(wholeNumber(0, 86_400)),
    privateNetwork: z.optional(z.boolean()),
    limits: z.optional(z.array(z.string())),
  })
  .check(
    z.refine(({ origins, credentials }) => !credentials || !isPattern(origins), {
      error: 'credentials requires exact origins, without "*"',
    }),
  )

const isPattern = (origins: string | readonly string[]): boolean =>
  typeof origins === 'string' || origins.some((origin) => origin.includes('*'))
