/** Schemas of a policy's `relations`, and of the relation that a route requires. */
import * as z from 'zod'
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

/** The input that `definePolicy` accepts. It compiles the model and parses the templates later. */
export const relationsSchema = z.strictObject({
  model: z.custom<NonNullable<unknown>>(
    (value) => typeof value === 'object' && value !== null,
    'must be a model, such as portcullis.model.json',
  ),
  subject: template.optional(),
  issuers: z.array(z.string().min(1)).optional(),
  maxStalenessMs: z.int().min(0).max(MAX_STALENESS_MS).optional(),
  cacheEntries: z.int().min(1).max(MAX_CACHE_ENTRIES).optional(),
  authority: z.enum(['redis', 'openfga', 'authzen']).optional(),
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
