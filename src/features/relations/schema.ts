/** Schema of the settings of `relations()`. */
import * as z from 'zod/mini'
import type { Feature } from '../../validators/feature.ts'
import { template } from '../../validators/relations.ts'
import { nonEmpty, wholeNumber, withShorthand } from '../../validators/schema-parts.ts'

/** A longer period would make the removal of a relation ineffective. */
const MAX_STALENESS_MS = 60_000
/** At about 400 bytes each, more than the memory of an isolate. */
const MAX_CACHE_ENTRIES = 1_000_000
const externalDecisionPoint = z.custom<Feature<'openfga' | 'authzen'>>(
  (value) => ['openfga', 'authzen'].includes((value as Feature<string> | null)?.feature ?? ''),
  "must be 'redis', openfga() from 'portcullis/openfga', or authzen() from 'portcullis/authzen'",
)

/** Does NOT check the model and the templates: `relations()` compiles them later. */
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
