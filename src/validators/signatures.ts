/** Schema of the settings of attack signatures. */
import type { SignatureCategory } from '../problems/reasons.ts'
import { modeSchema } from './mode.ts'
import { wholeNumber } from './schema-parts.ts'
import * as z from './zod.ts'

/** All categories of attack signatures. */
export const SIGNATURE_CATEGORIES = [
  'sql_injection',
  'path_traversal',
  'command_injection',
  'ssrf_target',
  'cross_site_scripting',
] as const satisfies readonly SignatureCategory[]

export const signaturesSchema = z.strictObject({
  threshold: z.optional(wholeNumber(1, 100)),
  mode: z.optional(modeSchema),
  categories: z.optional(z.array(z.enum(SIGNATURE_CATEGORIES)).check(z.minLength(1))),
})
