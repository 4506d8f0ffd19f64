/** Schema of the settings of attack signatures. */
import * as z from 'zod'
import type { SignatureCategory } from '../problems/reasons.ts'
import { modeSchema } from './mode.ts'

/** All categories of attack signatures. */
export const SIGNATURE_CATEGORIES = [
  'sql_injection',
  'path_traversal',
  'command_injection',
  'ssrf_target',
  'cross_site_scripting',
] as const satisfies readonly SignatureCategory[]

export const signaturesSchema = z.strictObject({
  threshold: z.int().min(1).max(100).optional(),
  mode: modeSchema.optional(),
  categories: z.array(z.enum(SIGNATURE_CATEGORIES)).min(1).optional(),
})
