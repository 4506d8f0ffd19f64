/** Schemas of a policy's `relations`, and of the relation that a route requires. */
import * as z from 'zod'
import type { Feature } from './feature.ts'
import { modeSchema } from './mode.ts'

/** A longer period would make the removal of a relation ineffective. */
const MAX_STALENESS_MS = 60_000
/** At about 400 bytes each, more than the memory of an isolate. */
const MAX_CACHE_ENTRIES = 1_000_000
/** All of them are sent with each check. */
export const MAX_CONTEXTUAL_TUPLES = 20
const MAX_TEMPLATE_CHARS = 512

const template = z.string().min(1).max(MAX_TEMPLATE_CHARS)
const relation = z.string().min(1)

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
  subject: template.optional(),
  issuers: z.array(z.string().min(1)).optional(),
  maxStalenessMs: z.int().min(0).max(MAX_STALENESS_MS).optional(),
  cacheEntries: z.int().min(1).max(MAX_CACHE_ENTRIES).optional(),
  // Parses 'redis' as undefined. Not a union, because its errors would not name the field.
  authority: z
    .preprocess(
      (value) => (value === 'redis' ? undefined : value),
      externalDecisionPoint.optional(),
    )
    .optional(),
})

/** The `relation` of a route. */
export const relationDemandSchema = z.strictObject({
  object: template,
  relation,
  contextualTuples: z
    .array(z.strictObject({ object: template, relation, subject: template }))
    .max(MAX_CONTEXTUAL_TUPLES)
    .optional(),
  mode: modeSchema.optional(),
})
