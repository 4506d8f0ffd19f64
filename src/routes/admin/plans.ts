/** Operators' calls that list the plans, and give them to API keys, subjects, clients and tenants. */

import * as z from 'zod/mini'
import { newAssignmentSchema, type PlanAssignment } from '../../metering/assignment.ts'
import { PLAN_PARTIES, planRecordOf } from '../../metering/plan-record.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { describe } from '../../validators/checks.ts'
import { pageQuerySchema } from '../../validators/page.ts'
import { integer } from '../../validators/schema-parts.ts'
import { type AdminCall, adminGroup } from './call.ts'
import type { AdminContext } from './context.ts'
import {
  createdBy,
  cursor,
  existing,
  idParams,
  inputRefused,
  time,
  timeOf,
  timeOrNull,
} from './input.ts'
import { issuersOf, refuseOtherTenant } from './tenant.ts'

const planView = () =>
  z.strictObject({
    name: z.string(),
    default: z.boolean().check(describe('applies to callers without another plan')),
    limits: z
      .record(z.string(), integer())
      .check(describe('units of each limit of the plan, by the name of the limit')),
  })
const assignmentView = () =>
  z.strictObject({
    id: z.uuid(),
    by: z.enum(PLAN_PARTIES),
    value: z.string(),
    issuer: z.nullable(z.string()).check(describe('null: all issuers that were trusted')),
    plan: z.string(),
    createdAt: time,
    createdBy,
    expiresAt: z.nullable(time).check(describe('null: in force until an operator deletes it')),
  })

function assignmentViewOf({
  createdAtSeconds,
  expiresAtSeconds,
  windows: _,
  ...assignment
}: PlanAssignment) {
  return {
    ...assignment,
    createdAt: timeOf(createdAtSeconds),
    expiresAt: timeOrNull(expiresAtSeconds),
  } satisfies z.infer<ReturnType<typeof assignmentView>>
}

/** Returns the plans of all limits. Plans of the same name in several limits are one plan. */
function plansOf(limits: ReadonlyMap<string, PolicyLimit>) {
  const plans = new Map<string, z.infer<ReturnType<typeof planView>>>()
  for (const { name, meter } of limits.values())
    for (const [plan, units] of meter?.plans?.units ?? []) {
      const known = plans.get(plan) ?? { name: plan, default: false, limits: {} }
      const isDefault = known.default || meter?.plans?.defaultPlan === plan
      const own = units === undefined ? {} : { [name]: units }
      plans.set(plan, { ...known, default: isDefault, limits: { ...known.limits, ...own } })
    }
  return plans
}

/** Throws `Denied` (`invalid_input`) if no limit of the policy has the plan. */
function refuseUnknownPlan(
  plan: string,
  { policyLimits }: Pick<AdminContext, 'policyLimits'>,
): void {
  const known = plansOf(policyLimits)
  if (known.has(plan)) return
  const message = `must be a plan of the policy: ${[...known.keys()].join(', ')}`
  throw inputRefused('body', '/plan', message)
}

/** Returns no calls if the policy has no plans. */
export function planCalls(context: AdminContext): AdminCall[] {
  const { planAssignments, issuers, policyLimits } = context
  const call = adminGroup('Plans', context)
  const [firstPlan] = plansOf(policyLimits).keys()
  if (firstPlan === undefined) return []

  return [
    call({
      method: 'GET',
      path: '/plans',
      permission: 'plans:list',
      id: 'listPlans',
      summary: 'List plans and assignments',
      query: pageQuerySchema,
      response: 'All plans of the policy, and a page of the assignments in force, newest first.',
      reply: () =>
        z.strictObject({
          plans: z.array(planView()),
          assignments: z.array(assignmentView()),
          cursor,
        }),
      async handle({ query }) {
        const { items, ...rest } = await planAssignments.list(query)
        const plans = [...plansOf(policyLimits).values()]
        return { plans, assignments: items.map(assignmentViewOf), ...rest }
      },
    }),
    call({
      method: 'POST',
      path: '/plans/assignments',
      permission: 'plans:assign',
      id: 'assignPlan',
      summary: 'Give a plan to an API key, a subject, a client or a tenant',
      description:
        'Replaces an earlier assignment of the same party. An isolate that has just refused a ' +
        'request applies the plan within 5 seconds. An operator with a tenant is refused (403).',
      body: newAssignmentSchema,
      example: { by: 'client', value: 'mobile-app', plan: firstPlan },
      status: 201,
      response: 'The plan applies from the next request on.',
      reply: assignmentView,
      async handle({ body, operator, scope, changed }) {
        refuseOtherTenant(scope, undefined)
        refuseUnknownPlan(body.plan, context)
        const owners = issuersOf(body.issuer, issuers)
        const windows = await Promise.all(
          owners.map((issuer) => planRecordOf(body.by, issuer, body.value)),
        )
        const record = await planAssignments.create({
          ...body,
          windows,
          createdBy: operator.subject,
        })
        changed('plan.assign', record.id)
        return assignmentViewOf(record)
      },
    }),
    call({
      method: 'DELETE',
      path: '/plans/assignments/:id',
      permission: 'plans:assign',
      id: 'removePlanAssignment',
      summary: 'Remove an assignment',
      params: idParams,
      response: 'The assignment is deleted, and the next plan that is found applies.',
      async handle({ params: { id }, scope, changed }) {
        refuseOtherTenant(scope, undefined)
        await existing(planAssignments.remove(id))
        changed('plan.remove', id)
      },
    }),
  ]
}
