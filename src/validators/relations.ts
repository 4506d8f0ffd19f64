/** Schemas of a policy's `relations`, and of the relation that a route requires. */

import * as z from 'zod/mini'
import type { Feature } from './feature.ts'
import { modeSchema } from './mode.ts'
import { nonEmpty, text, wholeNumber, withShorthand } from './schema-parts.ts'

/** A longer period would make the removal of a relation ineffective. */
const MAX_STALENESS_MS = 60_000
/** At about 400 bytes each, more than the memory of an isolate. */
const MAX_CACHE_ENTRIES = 1_000_000
/** All of them are sent with each check. */
export const MAX_CONTEXTUAL_TUPLES = 20

const template = text(512)

const externalDecisionPoint = z.custom<Feature<'openfga' | 'authzen'>>(
  (value) => ['openfga', 'authzen'].includes((value as Feature<string> | null)?.feature ?? ''),
  "must be 'redis', openfga() from 'portcullis/openfga', or authzen() from 'portcullis/authzen'",
)

/** The settings of `relations()`, which compiles the model and parses the templates later. */
export const relationsSchema = z.strictObject({
  model: z.custom<NonNullable<unknown>>(
    (value) => typeof value === 'object' && value !== null,
    'must be a model, such as portcullis.model.json',
  ),
  subject: z.optional(template),
  issuers: z.optional(z.array(nonEmpty)),
  maxStalenessMs: z.optional(wholeNumber(0, MAX_STALENESS_MS)),
  cacheEntries: z.optional(wholeNumber(1, MAX_CACHE_ENTRIES)),
  authority: z.optional(withShorthand('redis', undefined, z.optional(externalDecisionPoint))),
})

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
