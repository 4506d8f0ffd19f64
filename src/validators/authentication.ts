/** The field `authentication` of a route. */
import * as z from 'zod/mini'
import { wholeNumber } from './schema-parts.ts'

/** Safe in a query and in quotation marks of a challenge; a space separates values. */
const acrValue = z
  .string()
  .check(z.maxLength(256), z.regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be visible ASCII'))

export const authenticationSchema = z.strictObject({
  acr: z.optional(z.array(acrValue).check(z.minLength(1), z.maxLength(8))),
  maxAgeSeconds: z.optional(wholeNumber(0, 31_536_000)),
})
