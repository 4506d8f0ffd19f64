import * as z from 'zod/mini'
import { SIGNATURE_CATEGORIES, type SignatureCategory } from '../../problems/reasons.ts'
import { type Mode, modeSchema } from '../../validators/mode.ts'
import { wholeNumber } from '../../validators/schema-parts.ts'

/** A field name (RFC 9110 section 5.1), or the start of one and an asterisk. */
const HEADER = /^[!#$%&'+.^_`|~\w-]{1,99}\*?$/
const HEADER_RULE = 'must be the name of a header such as User-Agent, or the start of names: X-*'

export const signaturesSchema = z.strictObject({
  threshold: z.optional(wholeNumber(1, 100)),
  mode: z.optional(modeSchema),
  categories: z.optional(z.array(z.enum(SIGNATURE_CATEGORIES)).check(z.minLength(1))),
  headers: z.optional(
    z.array(z.string().check(z.regex(HEADER, HEADER_RULE))).check(z.maxLength(50)),
  ),
})

/** Settings for attack signatures, which score the input that the other checks accepted. */
export interface SignaturesDefinition {
  /** Sum of the scores of a category from which a request is an attack, 1 to 100. Default 5. */
  readonly threshold?: number
  /** Default `observe`, so that operators can review the matches before enforcement. */
  readonly mode?: Mode
  /** The categories to check. Default all. */
  readonly categories?: readonly SignatureCategory[]
  /**
   * The request headers to search, because origins log them: names in any case, and `X-*` for every
   * name that starts with `X-`. At most 50. Default `User-Agent` and `Referer`; `[]` for none.
   */
  readonly headers?: readonly string[]
}

/** One decisive rule reaches the threshold, or a notable rule together with another rule. */
export const DEFAULT_SIGNATURES: Required<SignaturesDefinition> = {
  threshold: 5,
  mode: 'observe',
  categories: SIGNATURE_CATEGORIES,
  headers: ['User-Agent', 'Referer'],
}
