/** Schema of the relation that a route requires. */

import * as z from 'zod/mini'
import { modeSchema } from './mode.ts'
import { nonEmpty, text } from './schema-parts.ts'

/** All of them are sent with each check. */
export const MAX_CONTEXTUAL_TUPLES = 20

/** An object or a subject with places for values of the request. */
export const template = text(512)

export const relationDemandSchema = z.strictObject({
  object: template,
  relation: nonEmpty,
  contextualTuples: z.optional(
    z
      .array(z.strictObject({ object: template, relation: nonEmpty, subject: template }))
      .check(z.maxLength(MAX_CONTEXTUAL_TUPLES)),
  ),
  mode: z.optional(modeSchema),
})
