import * as z from 'zod/mini'
import { SIGNATURE_CATEGORIES, type SignatureCategory } from '../../problems/reasons.ts'
import { type Mode, modeSchema } from '../../validators/mode.ts'
import { wholeNumber } from '../../validators/schema-parts.ts'

export const signaturesSchema = z.strictObject({
  threshold: z.optional(wholeNumber(1, 100)),
  mode: z.optional(modeSchema),
  categories: z.optional(z.array(z.enum(SIGNATURE_CATEGORIES)).check(z.minLength(1))),
})

/** Settings for attack signatures, which score the input that the other checks accepted. */
export interface SignaturesDefinition {
  /** Sum of the scores of a category from which a request is an attack, 1 to 100. Default 5. */
  readonly threshold?: number
  /** Default `observe`, so that operators can review the matches before enforcement. */
  readonly mode?: Mode
  /** The categories to check. Default all. */
  readonly categories?: readonly SignatureCategory[]
}

/** One decisive rule reaches the threshold, or a notable rule together with another rule. */
export const DEFAULT_SIGNATURES: Required<SignaturesDefinition> = {
  threshold: 5,
  mode: 'observe',
  categories: SIGNATURE_CATEGORIES,
}
