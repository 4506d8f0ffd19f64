/** Operators' calls that write, list, check and expand relation tuples. */

import * as z from 'zod/mini'
import {
  CONSISTENCY_HEADER,
  decodeConsistency,
  encodeConsistency,
} from '../../access/relations/consistency.ts'
import type { PolicyDecisionPoint, RelationAnswer } from '../../access/relations/decision-point.ts'
import type { RelationModel } from '../../access/relations/model.ts'
import { mistakeOfRelation, mistakeOfSubject } from '../../access/relations/permitted.ts'
import {
  matchesFilter,
  type RelationTuples,
  type TupleChanges,
  type TupleQuery,
} from '../../access/relations/store.ts'
import type { ExplainedAnswer, ExplainingDecisionPoint } from '../../access/relations/trace.ts'
import {
  cursorOf,
  parseObject,
  parseSubject,
  RELATION_NAME,
  tupleOfCursor,
} from '../../access/relations/tuple.ts'
import { MAX_TUPLE_CHANGE_BYTES, tupleChange } from '../../access/relations/tuple-change.ts'
import { utf8Length } from '../../audit/truncate.ts'
import { Denied, Unavailable } from '../../errors.ts'
import { type AdminCall, adminGroup, type CallGroup } from '../../routes/admin/call.ts'
import type { CallFrame } from '../../routes/admin/frame.ts'
import { consistencyToken, cursor, inputRefused } from '../../routes/admin/input.ts'
import { permissionOf } from '../../routes/admin/permissions.ts'
import { selectTenant } from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { integer } from '../../validators/schema-parts.ts'
import {
  exampleTuple,
  expansionSchema,
  refuseBadTuples,
  refuseMistake,
  relationQuerySchema,
  tupleChangesSchema,
  tupleQuerySchema,
  tupleSchema,
} from './call-input.ts'
import { expanded, relationsIn } from './expand.ts'

const ALL_OF_TYPE = ':'

const checkView = () =>
  z.strictObject({
    allowed: z.boolean(),
    outcome: z.enum(['allowed', 'denied', 'unknown']),
    why: z
      .optional(z.enum(['max_depth_exceeded', 'max_work_exceeded', 'negated_cycle']))
      .check(describe('why the outcome is unknown; an unknown outcome is never allowed')),
    consistencyToken: consistencyToken.check(describe('identifies the state that was checked')),
    trace: z
      .optional(z.looseObject({}))
      .check(describe('the steps of the evaluation, from the relation down')),
  })

function checkViewOf(
  { decision, version, trace }: RelationAnswer & Partial<ExplainedAnswer>,
  tenant: string | null,
) {
  return {
    allowed: decision.outcome === 'allowed',
    ...decision,
    consistencyToken: encodeConsistency(version, tenant),
    ...(trace !== undefined && { trace }),
  }
}

export interface AdminRelations {
  readonly model: RelationModel
  /** Undefined if an external policy decision point stores the tuples. */
  readonly tuples: RelationTuples | undefined
  /** Decides without a cache. `explain` is undefined if it does not explain its decisions. */
  readonly decisionPoint: PolicyDecisionPoint & Partial<ExplainingDecisionPoint>
}

export function relationCalls(relations: AdminRelations): CallGroup {
  return (frame) => createCalls(relations, frame)
}

function createCalls(relations: AdminRelations, frame: CallFrame): readonly AdminCall[] {
  const { model, decisionPoint } = relations
  const call = adminGroup('Relations', frame)
  const example = exampleTuple(model)

  return [
    call({
      method: 'POST',
      path: '/relations',
      permission: 'relations:write',
      id: 'writeRelations',
      summary: 'Write and delete relation tuples',
      description:
        'Applies all changes or none: at most 100 tuples, of which the model must permit the ' +
        '`writes`. The changes apply from the next request on that does not use a cached decision. ' +
        'In ids, `%`, `:`, `#`, `*`, white space and invisible characters are percent-encoded. A ' +
        'body is limited to 64 KiB (413), and its tuples to 24 KB, which the audit event ' +
        'records; send a hundred tuples with long ids in several calls. The call can be repeated. After ' +
        'a 503, the changes may or may not have been applied.',
      body: tupleChangesSchema,
      example: { writes: [example], deletes: [{ ...example, object: `${example.object}8` }] },
      response: `The changes are in force. The header \`${CONSISTENCY_HEADER}\` contains the token, too.`,
      reply: () =>
        z.strictObject({
          consistencyToken,
          written: integer().check(describe('tuples that did not exist before')),
          deleted: integer().check(describe('tuples that existed before')),
        }),
      problems: [404],
      async handle({ body, scope, changed, header }) {
        const tenant = selectTenant(scope, body.tenant) ?? null
        const tuples = tuplesOf(relations, 'body')
        const { writes = [], deletes = [] } = body
        refuseBadTuples(model, { writes }, { deletes })
        const changes: TupleChanges = { writes, deletes }
        const change = tupleChange(tenant, changes)
        if (utf8Length(JSON.stringify(change)) > MAX_TUPLE_CHANGE_BYTES)
          throw inputRefused('body', '', 'has more than 24 KB of tuples; use several calls')
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
        'Sorted by type, object and relation; tuples of one subject by object and relation. ' +
        'Without an object and a subject, lists the tuples of all types of the model.',
      query: tupleQuerySchema,
      response: 'A page of the stored tuples, including tuples that the model does not permit.',
      reply: () => z.strictObject({ tuples: z.array(tupleSchema), cursor }),
      problems: [404],
      async handle({ query, scope }) {
        const tenant = selectTenant(scope, query.tenant) ?? null
        const { tuples, hasMore } = await tuplesOf(relations, 'query').read(
          tenant,
          readQuery(query),
        )
        const last = tuples.at(-1)
        return { tuples, ...(hasMore && last !== undefined && { cursor: cursorOf(last) }) }
      },
    }),
    call({
      method: 'POST',
      changes: false,
      path: '/check',
      permission: 'relations:check',
      id: 'checkRelation',
      summary: 'Check whether a subject has a relation to an object',
      description:
        'Decides as for a request, without a cache. The model must contain every type and relation ' +
        'that the body names, and must permit its contextual tuples. `trace` returns the tuples that ' +
        `led to the decision, and also requires the permission \`${permissionOf('relations:read')}\`.`,
      body: relationQuerySchema,
      example,
      response: 'The decision.',
      reply: checkView,
      problems: [404],
      async handle({ body, operator, scope }) {
        const tenant = selectTenant(scope, body.tenant) ?? null
        const { object, relation, subject, contextualTuples = [], trace = false } = body
        refuseMistake(mistakeOfRelation(model, body) ?? mistakeOfSubject(model, subject))
        refuseBadTuples(model, { contextualTuples })
        const atLeast = versionOf(body.consistencyToken, tenant, frame.now())
        const query = { tenant, object, relation, subject, contextualTuples, atLeast }
        if (!trace) return checkViewOf(await decisionPoint.check(query), tenant)
        const permission = permissionOf('relations:read')
        if (!frame.authorizer(operator, permission))
          throw new Denied({ code: 'permission_missing', permission })
        if (decisionPoint.explain === undefined)
          throw inputRefused('body', '/trace', 'requires tuples that the gateway stores itself')
        return checkViewOf(await decisionPoint.explain(query), tenant)
      },
    }),
    call({
      method: 'POST',
      changes: false,
      path: '/expand',
      permission: 'relations:read',
      id: 'expandRelation',
      summary: 'Expand a relation to an object',
      description:
        "Returns one level in the format of OpenFGA's `expand`, without the members of the usersets " +
        'that it names. Omits tuples that the model does not permit. A relation with more than 1,000 ' +
        'subjects or objects returns 1,000 of them, and `hasMore`.',
      body: expansionSchema,
      example: { object: example.object, relation: example.relation },
      response: 'The tree.',
      reply: () =>
        z.strictObject({ tree: z.strictObject({ root: z.looseObject({}) }), consistencyToken }),
      problems: [404],
      async handle({ body, scope }) {
        const tenant = selectTenant(scope, body.tenant) ?? null
        const tuples = tuplesOf(relations, 'body')
        const { object, relation } = body
        refuseMistake(mistakeOfRelation(model, body))
        const definition = model.types.get(parseObject(object)?.type ?? '')?.get(relation)
        if (definition === undefined) throw new TypeError('expand: mistakeOfRelation missed one')
        const names = relationsIn(definition.userset, relation)
        const { named, version } = await tuples.subjectsOf(tenant, object, names)
        const byRelation = new Map(
          names.flatMap((name, at) => {
            const subjects = named[at]
            return subjects === undefined ? [] : [[name, subjects]]
          }),
        )
        const root = expanded(definition.userset, { model, object, relation, named: byRelation })
        return { tree: { root }, consistencyToken: encodeConsistency(version, tenant) }
      },
    }),
  ]
}

function tuplesOf({ tuples }: AdminRelations, where: 'query' | 'body'): RelationTuples {
  if (tuples === undefined)
    throw inputRefused(
      where,
      '',
      'cannot be used: the external policy decision point stores the tuples; call it instead',
    )
  return tuples
}

/** Returns the version that a check must include. */
function versionOf(
  token: string | undefined,
  tenant: string | null,
  nowMs: number,
): number | undefined {
  if (token === undefined) return undefined
  const version = decodeConsistency(token, tenant, nowMs)
  if (version === undefined)
    throw inputRefused('body', '/consistencyToken', 'must be the token of a write of this tenant')
  return version
}

/**
 * Returns whether a failed write may have been carried out. Redis reports a refused command as an
 * error without a cause. An HTTP status may come from a proxy in front of Redis, after the write.
 */
function mayHaveWritten(error: unknown): boolean {
  if (!(error instanceof Unavailable) || error.shortCircuited) return false
  return error.fault !== 'refused' || error.cause !== undefined
}

function readQuery({
  object,
  relation,
  subject,
  limit,
  cursor,
}: z.output<typeof tupleQuerySchema>): TupleQuery {
  const refuse = (name: string, message: string) => inputRefused('query', `/${name}`, message)
  const isOfType = object?.endsWith(ALL_OF_TYPE) === true
  if (object !== undefined) {
    const isValid = isOfType
      ? RELATION_NAME.test(object.slice(0, -1))
      : parseObject(object) !== undefined
    if (!isValid) throw refuse('object', 'must be an object, type:id, or a type: type:')
  }
  if (relation !== undefined) {
    if (!RELATION_NAME.test(relation)) throw refuse('relation', 'must be the name of a relation')
    if (object === undefined || isOfType) throw refuse('relation', 'requires an object with an id')
  }
  if (subject !== undefined && parseSubject(subject) === undefined)
    throw refuse('subject', 'must be a subject: type:id, type:id#relation or type:*')
  const filter = { object, relation, subject }
  const after = cursor === undefined ? undefined : tupleOfCursor(cursor)
  if (cursor !== undefined && (after === undefined || !matchesFilter(after, filter)))
    throw refuse('cursor', 'must be a cursor from an earlier page')
  return { ...filter, limit, after }
}
