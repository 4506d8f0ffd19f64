/** Input of the calls about relations: schemas, checks against the model, and examples. */

import * as z from 'zod/mini'
import type { RelationModel } from '../../access/relations/model.ts'
import {
  mistakeOfSyntax,
  mistakeOfTuple,
  type TupleMistake,
} from '../../access/relations/permitted.ts'
import { MAX_TUPLES_PER_WRITE } from '../../access/relations/store.ts'
import { formatTuple, type RelationTuple, WILDCARD } from '../../access/relations/tuple.ts'
import { Denied } from '../../errors.ts'
import type { InputError } from '../../problems/reasons.ts'
import { inputRefused } from '../../routes/admin/input.ts'
import { describe, meta, superRefine } from '../../validators/checks.ts'
import { name } from '../../validators/names.ts'
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
 * Patterns for the documentation. They match everything that the grammar (`tuple.ts`) accepts, and
 * little more. A pattern that also described `%` escapes would slow request generators down to
 * minutes.
 */
const NAME = '[A-Za-z_][A-Za-z0-9_-]{0,62}'
const ID_CHARACTER = '[^:#*\\u0000- \\u007f-\\u00a0\\u2000-\\u200f\\u2028-\\u202f\\u3000\\ufeff]'
const documented = (pattern: string, maxChars: number) =>
  z.string().check(z.minLength(1), z.maxLength(maxChars), meta({ pattern: `^${pattern}$` }))

const object = documented(`${NAME}:${ID_CHARACTER}+`, MAX_OBJECT_CHARS)
const relation = documented(NAME, MAX_RELATION_CHARS)
const subject = documented(`${NAME}:(?:\\*|${ID_CHARACTER}+(?:#${NAME})?)`, MAX_SUBJECT_CHARS)
const consistencyToken = documented('v1\\.[0-9a-z]+\\.[A-Za-z0-9_-]*', MAX_TOKEN_CHARS)
const tenant = z
  .optional(name(256))
  .check(describe("default: the caller's own tenant, or no tenant if the caller has none"))

/** A tuple in its written form. The schema does not check that form. */
export const tupleSchema = z.strictObject({ object, relation, subject })

const tuples = z.optional(z.array(tupleSchema).check(z.maxLength(MAX_TUPLES_PER_WRITE)))

export const tupleChangesSchema = z.strictObject({ tenant, writes: tuples, deletes: tuples }).check(
  superRefine(({ writes = [], deletes = [] }, context) => {
    const report = (path: (string | number)[], message: string) =>
      context.addIssue({ code: 'custom', path, message })
    const count = writes.length + deletes.length
    if (count === 0) report([], 'must contain at least one tuple in writes or deletes')
    if (count > MAX_TUPLES_PER_WRITE)
      report(
        [],
        `must contain at most ${MAX_TUPLES_PER_WRITE} tuples in writes and deletes together`,
      )
    const seen = new Set<string>()
    for (const [list, some] of Object.entries({ writes, deletes }))
      for (const [index, tuple] of some.entries()) {
        const text = formatTuple(tuple)
        if (seen.has(text)) report([list, index], 'duplicates an earlier tuple of the body')
        seen.add(text)
      }
  }),
)

export const tupleQuerySchema = z.strictObject({
  tenant,
  object: z
    .optional(documented(`${NAME}:${ID_CHARACTER}*`, MAX_OBJECT_CHARS))
    .check(describe('`type:id`, or `type:` for all objects of a type')),
  relation: z.optional(relation).check(describe('requires an object')),
  subject: z.optional(subject),
  limit: pageSize,
  cursor: z
    .optional(documented('[A-Za-z0-9_-]+', MAX_CURSOR_CHARS))
    .check(describe('cursor from an earlier page')),
})

export const relationQuerySchema = z.strictObject({
  tenant,
  object,
  relation,
  subject: subject.check(describe('`type:id`, `type:id#relation` or `type:*`')),
  contextualTuples: z
    .optional(z.array(tupleSchema).check(z.maxLength(MAX_CONTEXTUAL_TUPLES)))
    .check(describe('tuples that are assumed to exist for this check only')),
  consistencyToken: z
    .optional(consistencyToken)
    .check(describe('token of a write that the check must include; default: any recent state')),
  trace: z.optional(z.boolean()).check(describe('default: false')),
})

export const expansionSchema = z.strictObject({ tenant, object, relation })

/** Tuples of a body, by the name of their list. */
type NamedTuples = Readonly<Record<string, readonly RelationTuple[]>>

/** Throws `Denied` (`invalid_input`) with the mistake of each bad tuple: 100 findings at most. */
export function refuseBadTuples(
  model: RelationModel,
  written: NamedTuples,
  deleted: NamedTuples = {},
): void {
  const errors = [
    ...errorsIn(written, (tuple) => mistakeOfTuple(model, tuple)),
    // A tuple that the model does not permit may still exist. It can be deleted.
    ...errorsIn(deleted, mistakeOfSyntax),
  ]
  if (errors.length > 0) throw new Denied({ code: 'invalid_input', errors })
}

function errorsIn(
  named: NamedTuples,
  mistakeOf: (tuple: RelationTuple) => TupleMistake | undefined,
): readonly InputError[] {
  return Object.entries(named).flatMap(([list, tuples]) =>
    tuples.flatMap((tuple, index): InputError[] => {
      const mistake = mistakeOf(tuple)
      if (mistake === undefined) return []
      const path = `/${list}/${index}/${mistake.part}`
      return [{ in: 'body', path, message: mistake.message }]
    }),
  )
}

export function refuseMistake(mistake: TupleMistake | undefined): void {
  if (mistake !== undefined) throw inputRefused('body', `/${mistake.part}`, mistake.message)
}

/** Returns the first kind of tuple that a model permits, for the documentation. */
export function exampleTuple(model: RelationModel): RelationTuple {
  for (const [type, relations] of model.types)
    for (const [relation, { directTypes }] of relations)
      for (const direct of directTypes) {
        const subject = `${direct.type}:${direct.kind === 'wildcard' ? WILDCARD : 'alice'}`
        const userset = direct.kind === 'userset' ? `#${direct.relation}` : ''
        return { object: `${type}:7`, relation, subject: subject + userset }
      }
  return { object: 'order:7', relation: 'owner', subject: 'user:alice' }
}
