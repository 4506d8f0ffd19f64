/** Operators' calls that list the plans, and give them to API keys, subjects, clients and tenants. */

import * as z from 'zod/mini'
import { PLAN_PARTIES, planRecordOf } from '../../access/admission/plan-record.ts'
import { Denied } from '../../errors.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import {
  createdByOf,
  existing,
  idParams,
  inputRefused,
  listing,
  ownerView,
  ownerViewOf,
} from '../../routes/admin/input.ts'
import { permissionOf } from '../../routes/admin/permissions.ts'
import {
  listedFor,
  refuseTenant,
  selectIssuers,
  type TenantScope,
} from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { integer } from '../../validators/schema-parts.ts'
import { type Assignment, newAssignmentSchema } from '../plans/assignment.ts'
import type { AdminContext } from './admin-context.ts'

const planView = () =>
  z.strictObject({
    name: z.string(),
    default: z.boolean().check(describe('applies to callers without another plan')),
    limits: z
      .record(z.string(), integer())
      .check(describe('units of each limit of the plan, by the name of the limit')),
  })
const assignmentView = () =>
  ownerView({ by: z.enum(PLAN_PARTIES), value: z.string(), plan: z.string() })

/** Returns the plans of all limits. Plans of the same name in several limits are one plan. */
function collectPlans(limits: ReadonlyMap<string, PolicyLimit>) {
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
  const known = collectPlans(policyLimits)
  if (known.has(plan)) return
  const message =
    known.size === 0
      ? 'must be absent, because the policy has no plans'
      : `must be a plan of the policy: ${[...known.keys()].join(', ')}`
  throw inputRefused('body', '/plan', message)
}

/** The plan that an API key has, among the assignments. */
export function createKeyPlans(context: AdminContext) {
  const { planAssignments, authorizer, publicUrl } = context
  const by = 'key'

  const assignmentOf = async (id: string) =>
    planAssignments.ownerOf(await planRecordOf(by, publicUrl, id))

  async function remove(id: string): Promise<void> {
    const assignment = await assignmentOf(id)
    if (assignment !== undefined) await planAssignments.remove(assignment.id)
  }

  return {
    /** Returns null if the key has no plan of its own. */
    planOf: async (id: string) => (await assignmentOf(id))?.plan ?? null,

    /**
     * Throws `Denied` if the plan is unknown, or if the operator may not give plans. Undefined: the call
     * does not change the plan.
     */
    refuseChange(plan: string | null | undefined, scope: TenantScope): void {
      if (plan === undefined) return
      const permission = permissionOf('plans:assign')
      if (!authorizer(scope.operator, permission))
        throw new Denied({ code: 'permission_missing', permission })
      refuseTenant(scope)
      if (plan !== null) refuseUnknownPlan(plan, context)
    },

    /** Null: removes the plan. */
    async set(id: string, plan: string | null, createdBy: string): Promise<void> {
      if (plan === null) return remove(id)
      const windows = [await planRecordOf(by, publicUrl, id)]
      await planAssignments.create({ by, value: id, issuer: publicUrl, plan, windows, createdBy })
    },

    remove,
  }
}

/** Returns no calls if the policy has no plans. */
export function planCalls(context: AdminContext): AdminCall[] {
  const { planAssignments, issuers, policyLimits } = context
  const call = adminGroup('Plans', context)
  const known = collectPlans(policyLimits)
  const [firstPlan] = known.keys()
  const ownedOf = ({ by, value, issuer }: Assignment) => ({
    tenant: by === 'tenant' ? value : undefined,
    issuers: issuer === null ? issuers : [issuer],
  })
  if (firstPlan === undefined) return []

  return [
    call({
      method: 'GET',
      path: '/plans',
      permission: 'plans:list',
      id: 'listPlans',
      summary: 'List plans and assignments',
      description: 'Operators with a tenant see the plan of their tenant.',
      response: 'All plans of the policy, and a page of the assignments in force, newest first.',
      ...listing('assignments', planAssignments.list, assignmentView, ownerViewOf, {
        listedFor: (scope) => listedFor(scope, ownedOf),
        first: { name: 'plans', items: [...known.values()], view: planView },
      }),
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
        refuseTenant(scope)
        refuseUnknownPlan(body.plan, context)
        const owners = selectIssuers(body.issuer, issuers)
        const windows = await Promise.all(
          owners.map((issuer) => planRecordOf(body.by, issuer, body.value)),
        )
        const record = await planAssignments.create({
          ...body,
          windows,
          ...createdByOf(operator),
        })
        changed('plan.assign', record.id)
        return ownerViewOf(record)
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
        refuseTenant(scope)
        await existing(planAssignments.remove(id))
        changed('plan.remove', id)
      },
    }),
  ]
}
