/** Operators' calls that write, delete and list relation tuples. */
import * as z from 'zod'
import { utf8Length } from '../../audit/truncate.ts'
import { Unavailable } from '../../errors.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { CONSISTENCY_HEADER, encodeConsistency } from '../../relations/consistency.ts'
import { cursorOf, tupleOfCursor } from '../../relations/cursor.ts'
import { isAmong, type TupleChanges, type TupleQuery } from '../../relations/store.ts'
import { parseObject, parseSubject, RELATION_NAME } from '../../relations/tuple.ts'
import { MAX_TUPLE_CHANGE_BYTES, tupleChange } from '../../relations/tuple-change.ts'
import { type AdminCall, adminGroup, inputRefused } from './call.ts'
import { exampleTuple } from './relation-example.ts'
import { refuseBadTuples, relationsOf, tuplesOf } from './relation-input.ts'
import {
  type TupleListQuery,
  tupleChangesSchema,
  tupleQuerySchema,
  tupleSchema,
} from './relation-schemas.ts'
import { consistencyToken, cursor } from './schemas.ts'
import type { AdminOptions } from './stores.ts'
import { tenantOf } from './tenant.ts'

const ALL_OF_TYPE = ':'

/** Creates the calls below `/-/admin/relations`. */
export function relationCalls(options: AdminOptions, limits: readonly PolicyLimit[]): AdminCall[] {
  const call = adminGroup('Relations', limits)
  const tuple = exampleTuple(options.relations?.model)
  return [
    call({
      method: 'POST',
      path: '/relations',
      permission: 'relations:write',
      id: 'writeRelations',
      summary: 'Write and delete relation tuples',
      description:
        'All of them or none, up to 100 together: `writes` that the model permits, and any `deletes`. ' +
        'In force with the next request that does not take a remembered decision. Ids are in their written form, in ' +
        'which `%`, `:`, `#`, `*`, white space and what cannot be seen is percent-encoded. A body may ' +
        'have 64 KiB (else 413) and 24 KB of tuples, which the audit trail tells: a hundred with very ' +
        'long ids have to come in several calls. ' +
        'What is there already is not written again, and a call can be repeated. After a 503 it may ' +
        'have been carried out, or not. Without relations in the policy there is no such call (404).',
      body: tupleChangesSchema,
      example: { writes: [tuple], deletes: [{ ...tuple, object: `${tuple.object}8` }] },
      status: 200,
      answer: `In force. The token is in the header \`${CONSISTENCY_HEADER}\`, too.`,
      reply: () =>
        z.strictObject({
          consistencyToken,
          written: z.int().describe('tuples that were not there before'),
          deleted: z.int().describe('tuples that are not there any more'),
        }),
      problems: [404],
      async handle({ body, operator, changed, header }) {
        const relations = relationsOf(options)
        const asked = { call: 'relations:write', tenantIssuers: options.tenantIssuers } as const
        const tenant = tenantOf(operator, body.tenant, asked) ?? null
        const tuples = tuplesOf(relations, 'body')
        const { writes = [], deletes = [] } = body
        refuseBadTuples(relations.model, [['writes', writes]], [['deletes', deletes]])
        const changes: TupleChanges = { writes, deletes }
        const change = tupleChange(tenant, changes)
        if (utf8Length(JSON.stringify(change)) > MAX_TUPLE_CHANGE_BYTES)
          throw inputRefused(
            'body',
            '',
            'has more than 24 KB of tuples: send them in several calls',
          )
        try {
          const { version, ...counts } = await tuples.write(tenant, changes)
          changed('relations.write', change)
          const token = encodeConsistency(version, tenant)
          header(CONSISTENCY_HEADER, token)
          return { consistencyToken: token, ...counts }
        } catch (error) {
          // The change may be in force, so the audit trail must record it.
          if (mayHaveWritten(error)) changed('relations.write-unanswered', change)
          throw error
        }
      },
    }),
    call({
      method: 'GET',
      path: '/relations',
      permission: 'relations:read',
      id: 'listRelations',
      summary: 'List relation tuples',
      description:
        'By type, object and relation; those of one subject by object and relation. Without an object ' +
        'and a subject, those of the types that the model has.',
      query: tupleQuerySchema,
      status: 200,
      answer: 'A page of the tuples that are there, also of those that the model does not permit.',
      reply: () => z.strictObject({ tuples: z.array(tupleSchema), cursor }),
      problems: [404],
      async handle({ query, operator }) {
        const relations = relationsOf(options)
        const asked = { call: 'relations:read', tenantIssuers: options.tenantIssuers } as const
        const tenant = tenantOf(operator, query.tenant, asked) ?? null
        const { tuples, hasMore } = await tuplesOf(relations, 'query').read(tenant, queryOf(query))
        const last = tuples.at(-1)
        return { tuples, ...(hasMore && last !== undefined && { cursor: cursorOf(last) }) }
      },
    }),
  ]
}

/**
 * Returns whether a failed write may have been carried out. Redis reports a refused command as an
 * error without a cause. An HTTP status may come from a proxy in front of Redis, after the write.
 */
function mayHaveWritten(error: unknown): boolean {
  if (!(error instanceof Unavailable) || error.shortCircuited) return false
  return error.fault !== 'refused' || error.cause !== undefined
}

/**
 * Parses the query. Throws `Denied` (`input_invalid`) for malformed values, and for values that
 * cannot be combined.
 */
function queryOf({ object, relation, subject, limit, cursor }: TupleListQuery): TupleQuery {
  const refuse = (name: string, message: string) => inputRefused('query', `/${name}`, message)
  const isOfType = object?.endsWith(ALL_OF_TYPE) === true
  if (object !== undefined) {
    const isGood = isOfType
      ? RELATION_NAME.test(object.slice(0, -1))
      : parseObject(object) !== undefined
    if (!isGood) throw refuse('object', 'must be an object, type:id, or a type: type:')
  }
  if (relation !== undefined) {
    if (!RELATION_NAME.test(relation)) throw refuse('relation', 'must be the name of a relation')
    if (object === undefined || isOfType) throw refuse('relation', 'needs an object with an id')
  }
  if (subject !== undefined && parseSubject(subject) === undefined)
    throw refuse('subject', 'must be a subject: type:id, type:id#relation or type:*')
  const filter = { object, relation, subject }
  const after = cursor === undefined ? undefined : tupleOfCursor(cursor)
  if (cursor !== undefined && (after === undefined || !isAmong(after, filter)))
    throw refuse('cursor', 'must be a cursor from an earlier page')
  return { ...filter, limit, after }
}
