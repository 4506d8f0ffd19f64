/** Schemas of the input of calls about relations. */
import * as z from 'zod'
import { MAX_TUPLES_PER_WRITE } from '../../relations/store.ts'
import { formatTuple } from '../../relations/tuple.ts'
import { name } from '../../validators/operator-names.ts'
import { pageSize } from '../../validators/page.ts'
import { MAX_CONTEXTUAL_TUPLES } from '../../validators/relations.ts'

/** An id has at most 512 characters, a name of a type or relation 63. */
const MAX_OBJECT_CHARS = 576
const MAX_SUBJECT_CHARS = 640
const MAX_RELATION_CHARS = 63
const MAX_TOKEN_CHARS = 2_048
/** A cursor is the encoded last tuple of a page. */
const MAX_CURSOR_CHARS = 4_096

/**
 * Patterns for the documentation. They match everything that the grammar (`tuple.ts`) accepts, and little
 * more: that `%` begins an escape would take generators of requests minutes.
 */
const NAME = '[A-Za-z_][A-Za-z0-9_-]{0,62}'
const ID_CHARACTER = '[^:#*\\u0000- \\u007f-\\u00a0\\u2000-\\u200f\\u2028-\\u202f\\u3000\\ufeff]'
const documented = (pattern: string, maxChars: number) =>
  z
    .string()
    .min(1)
    .max(maxChars)
    .meta({ pattern: `^${pattern}$` })

const object = documented(`${NAME}:${ID_CHARACTER}+`, MAX_OBJECT_CHARS)
const relation = documented(NAME, MAX_RELATION_CHARS)
const subject = documented(`${NAME}:(?:\\*|${ID_CHARACTER}+(?:#${NAME})?)`, MAX_SUBJECT_CHARS)
const consistencyToken = documented('v1\\.[0-9a-z]+\\.[A-Za-z0-9_-]*', MAX_TOKEN_CHARS)
const tenant = name(256)
  .optional()
  .describe("default: the caller's own; of a caller without one: callers without a tenant")

/** A tuple in its written form. The schema does not check that form. */
export const tupleSchema = z.strictObject({ object, relation, subject })

const tuples = z.array(tupleSchema).max(MAX_TUPLES_PER_WRITE).optional()

/** The body of `POST /-/admin/relations`. */
export const tupleChangesSchema = z
  .strictObject({ tenant, writes: tuples, deletes: tuples })
  .superRefine(({ writes = [], deletes = [] }, context) => {
    const count = writes.length + deletes.length
    const complain = (path: readonly (string | number)[], message: string) =>
      context.addIssue({ code: 'custom', path: [...path], message })
    if (count === 0) complain([], 'has nothing to write and nothing to delete')
    if (count > MAX_TUPLES_PER_WRITE)
      complain([], `has more than ${MAX_TUPLES_PER_WRITE} tuples, written and deleted together`)
    const seen = new Set<string>()
    for (const [list, some] of Object.entries({ writes, deletes }))
      for (const [index, tuple] of some.entries()) {
        const text = formatTuple(tuple)
        if (seen.has(text)) complain([list, index], 'is there already, further up')
        seen.add(text)
      }
  })

/** The query of `GET /-/admin/relations`. */
export const tupleQuerySchema = z.strictObject({
  tenant,
  object: documented(`${NAME}:${ID_CHARACTER}*`, MAX_OBJECT_CHARS)
    .optional()
    .describe('`type:id`, or all of a type: `type:`'),
  relation: relation.optional().describe('only with an object'),
  subject: subject.optional(),
  limit: pageSize,
  cursor: documented('[A-Za-z0-9_-]+', MAX_CURSOR_CHARS)
    .optional()
    .describe('from an earlier page'),
})

export type TupleListQuery = z.output<typeof tupleQuerySchema>

/** The body of `POST /-/admin/check`. */
export const relationQuestionSchema = z.strictObject({
  tenant,
  object,
  relation,
  subject: subject.describe('`type:id`, `type:id#relation` or `type:*`'),
  contextualTuples: z
    .array(tupleSchema)
    .max(MAX_CONTEXTUAL_TUPLES)
    .optional()
    .describe('taken to be there for this question alone'),
  consistencyToken: consistencyToken
    .optional()
    .describe('of a write that the answer must know; default: what is known'),
  trace: z.boolean().optional().describe('default false'),
})

/** The body of `POST /-/admin/expand`. */
export const expansionSchema = z.strictObject({ tenant, object, relation })
