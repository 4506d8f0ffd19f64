/** What operators say of relations: tuples to write, to delete and to list, and questions. */
import * as z from 'zod'
import { MAX_TUPLES_PER_WRITE } from '../relations/store.ts'
import { formatTuple } from '../relations/tuple.ts'
import { MAX_CONTEXTUAL_TUPLES } from '../validators/relations.ts'
import { name } from './names.ts'
import { pageSize } from './page.ts'

/** An id has at most 512 characters, names of types and relations 63. */
const MAX_OBJECT_CHARS = 576
const MAX_SUBJECT_CHARS = 640
const MAX_RELATION_CHARS = 63
const MAX_TOKEN_CHARS = 2_048
/** The last tuple of a page, encoded. */
const MAX_CURSOR_CHARS = 4_096

const object = z.string().min(1).max(MAX_OBJECT_CHARS)
const relation = z.string().min(1).max(MAX_RELATION_CHARS)
const subject = z.string().min(1).max(MAX_SUBJECT_CHARS)
const consistencyToken = z.string().min(1).max(MAX_TOKEN_CHARS)
const tenant = name(256)
  .optional()
  .describe("default: the caller's own; of a caller without one: callers without a tenant")

/** A tuple in its written form. Whether it is one is not for the schema to say. */
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
  object: object.optional().describe('`type:id`, or all of a type: `type:`'),
  relation: relation.optional().describe('only with an object'),
  subject: subject.optional(),
  limit: pageSize,
  cursor: z.string().min(1).max(MAX_CURSOR_CHARS).optional().describe('from an earlier page'),
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
