/** Operators' calls that check and expand relations. */
import * as z from 'zod'
import { Denied } from '../../errors.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { decodeConsistency, encodeConsistency } from '../../relations/consistency.ts'
import type { RelationAnswer, RelationQuery } from '../../relations/decision-point.ts'
import { expanded, relationsIn } from '../../relations/expand.ts'
import { mistakeOfRelation, mistakeOfSubject } from '../../relations/permitted.ts'
import type { ExplainedAnswer } from '../../relations/trace.ts'
import { parseObject } from '../../relations/tuple.ts'
import { type AdminCall, adminGroup, inputRefused } from './call.ts'
import { permissionOf } from './permissions.ts'
import { exampleTuple } from './relation-example.ts'
import { refuseBadTuples, refuseMistake, relationsOf, tuplesOf } from './relation-input.ts'
import { expansionSchema, relationQuestionSchema } from './relation-schemas.ts'
import { consistencyToken } from './schemas.ts'
import type { AdminOptions, AdminRelations } from './stores.ts'
import { tenantOf } from './tenant.ts'

const checkView = () =>
  z.strictObject({
    allowed: z.boolean(),
    outcome: z.enum(['allowed', 'denied', 'unknown']),
    why: z
      .enum(['max_depth_exceeded', 'max_work_exceeded', 'negated_cycle'])
      .optional()
      .describe('of what is unknown, which is never allowed'),
    consistencyToken: consistencyToken.describe('of what it was decided by'),
    trace: z
      .looseObject({})
      .optional()
      .describe('the steps that were taken, from the relation down'),
  })

function viewOf(
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

/** Creates the calls `/-/admin/check` and `/-/admin/expand`. */
export function checkCalls(options: AdminOptions, limits: readonly PolicyLimit[]): AdminCall[] {
  const call = adminGroup('Relations', limits)
  const tuple = exampleTuple(options.relations?.model)
  return [
    call({
      method: 'POST',
      changes: false,
      path: '/check',
      permission: 'relations:check',
      id: 'checkRelation',
      summary: 'Ask whether a subject has a relation to an object',
      description:
        'Decided as for a request, and anew. Everything named must be in the model, and contextual ' +
        'tuples such as could be written. `trace` tells the tuples that led to the answer, and needs ' +
        `the permission \`${permissionOf('relations:read')}\`, too. Without relations in the policy ` +
        'there is no such call (404).',
      body: relationQuestionSchema,
      example: tuple,
      status: 200,
      answer: 'The decision.',
      reply: checkView,
      problems: [404],
      async handle({ body, operator }) {
        const relations = relationsOf(options)
        const asked = { call: 'relations:check', tenantIssuers: options.tenantIssuers } as const
        const tenant = tenantOf(operator, body.tenant, asked) ?? null
        const { object, relation, subject, contextualTuples = [], trace = false } = body
        const { model } = relations
        refuseMistake(mistakeOfRelation(model, body) ?? mistakeOfSubject(model, subject))
        refuseBadTuples(model, [['contextualTuples', contextualTuples]], [])
        const atLeast = versionOf(body.consistencyToken, tenant)
        const query = { tenant, object, relation, subject, contextualTuples, atLeast }
        if (!trace) return viewOf(await relations.decisionPoint.check(query), tenant)
        const permission = permissionOf('relations:read')
        if (!options.authorizer(operator, permission))
          throw new Denied({ code: 'permission_missing', permission })
        return viewOf(await explained(relations, query), tenant)
      },
    }),
    call({
      method: 'POST',
      changes: false,
      path: '/expand',
      permission: 'relations:read',
      id: 'expandRelation',
      summary: 'Show what a relation to an object is made of',
      description:
        "One level, in the form that OpenFGA's `expand` has: what it names is not followed. Tuples " +
        'that the model does not permit are left out. Of more than 1,000 subjects or objects that one ' +
        'relation names, 1,000 are told, and `hasMore`.',
      body: expansionSchema,
      example: { object: tuple.object, relation: tuple.relation },
      status: 200,
      answer: 'The tree.',
      reply: () =>
        z.strictObject({ tree: z.strictObject({ root: z.looseObject({}) }), consistencyToken }),
      problems: [404],
      async handle({ body, operator }) {
        const relations = relationsOf(options)
        const asked = { call: 'relations:read', tenantIssuers: options.tenantIssuers } as const
        const tenant = tenantOf(operator, body.tenant, asked) ?? null
        const tuples = tuplesOf(relations, 'body')
        const { model } = relations
        const { object, relation } = body
        refuseMistake(mistakeOfRelation(model, body))
        const definition = model.types.get(parseObject(object)?.type ?? '')?.get(relation)
        if (definition === undefined) throw new TypeError('expand: mistakeOfRelation missed one')
        const names = relationsIn(definition.userset, relation)
        const { named, version } = await tuples.subjectsOf(tenant, object, names)
        const byRelation = new Map(
          names.flatMap((name, at) => {
            const told = named[at]
            return told === undefined ? [] : [[name, told]]
          }),
        )
        const root = expanded(definition.userset, { model, object, relation, named: byRelation })
        return { tree: { root }, consistencyToken: encodeConsistency(version, tenant) }
      },
    }),
  ]

  function versionOf(token: string | undefined, tenant: string | null): number | undefined {
    if (token === undefined) return undefined
    const version = decodeConsistency(token, tenant, options.now())
    if (version === undefined)
      throw inputRefused('body', '/consistencyToken', 'is no token of a write of this tenant')
    return version
  }
}

/**
 * Returns a decision with its trace. Throws `Denied` (`input_invalid`) if the policy decision point
 * does not explain its decisions.
 */
function explained(
  { decisionPoint }: AdminRelations,
  query: RelationQuery,
): Promise<ExplainedAnswer> {
  if (decisionPoint.explain === undefined)
    throw inputRefused('body', '/trace', 'is told of the tuples of the gateway only')
  return decisionPoint.explain(query)
}
