/** Operators' calls that list the limits, and override or reset single windows. */

import * as z from 'zod/mini'
import { limitKeyOf } from '../../admission/limit-key.ts'
import {
  type LimitOverrideRecord,
  newOverrideSchema,
  type WindowReset,
  windowResetSchema,
} from '../../admission/limit-override.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { describe } from '../../validators/checks.ts'
import { modeSchema } from '../../validators/mode.ts'
import { integer } from '../../validators/schema-parts.ts'
import { type AdminCall, adminGroup } from './call.ts'
import type { AdminContext } from './context.ts'
import { existing, idParams, inputRefused, listing, ownerView, ownerViewOf } from './input.ts'
import { addressOf, ownersOf, refuseOtherTenant, type TenantScope } from './tenant.ts'

const limitView = () =>
  z.strictObject({
    name: z.string(),
    limit: integer().check(describe('units per window; requests, if the cost is 1')),
    windowSeconds: integer(),
    by: z.enum(['key', 'subject', 'client', 'tenant', 'address', 'custom']),
    onUnavailable: z.enum(['deny', 'allow']),
    mode: modeSchema.check(describe('observe: the limit counts requests and refuses none')),
    engine: z.enum(['exact', 'upstash']).check(describe('upstash: windows are approximated')),
    cost: integer().check(describe('units that a request uses')),
    lease: z
      .nullable(z.strictObject({ max: integer(), ttlMs: integer() }))
      .check(describe('units that an isolate may reserve in advance; null: none')),
  })
const overrideView = () =>
  ownerView({
    limit: z.string(),
    value: z.string(),
    requests: integer().check(describe('requests per window')),
  })

function limitViewOf(rule: PolicyLimit): z.infer<ReturnType<typeof limitView>> {
  const { by, engine, lease } = rule
  return {
    name: rule.name,
    limit: rule.limit,
    windowSeconds: rule.windowSeconds,
    by: typeof by === 'function' ? 'custom' : by,
    onUnavailable: rule.onUnavailable,
    mode: rule.mode ?? 'enforce',
    engine: typeof engine === 'object' ? engine.feature : 'exact',
    cost: rule.cost ?? 1,
    lease: lease === undefined ? null : { max: lease.max, ttlMs: lease.ttlMs },
  }
}

export function limitCalls(context: AdminContext): AdminCall[] {
  const { overrides, windows, issuers, policyLimits } = context
  const call = adminGroup('Limits', context)
  const [firstLimit] = policyLimits.values()
  const example = {
    limit: firstLimit?.name ?? 'standard',
    value: firstLimit?.by === 'address' ? '203.0.113.7' : 'alice',
  }

  /** Throws `Denied` if an override also covers windows of another tenant. */
  async function refuseOtherTenants(scope: TenantScope, record: LimitOverrideRecord) {
    const { limit, value, windows: overridden } = record
    const rule = policyLimits.get(limit)
    if (rule?.by !== 'tenant') return
    const owners = ownersOf(scope, { issuer: undefined, tenant: value }, issuers)
    const own = await Promise.all(owners.map((issuer) => limitKeyOf(rule, { issuer, value })))
    if (!overridden.every((key) => own.includes(key))) refuseOtherTenant(scope, undefined)
  }

  /** Returns the rule that a call names, its normalized value, and the keys of its windows. */
  async function windowsOf(scope: TenantScope, { limit, value, issuer }: WindowReset) {
    const rule = policyLimits.get(limit)
    if (rule === undefined)
      throw inputRefused('body', '/limit', 'must be the name of a limit of the policy')
    if (rule.by !== 'address' && typeof rule.by === 'string') {
      const tenant = rule.by === 'tenant' ? value : undefined
      const owners = ownersOf(scope, { issuer, tenant }, issuers)
      const keys = owners.map((owner) => limitKeyOf(rule, { issuer: owner, value }))
      return { rule, value, keys: await Promise.all(keys) }
    }
    if (issuer !== undefined)
      throw inputRefused('body', '/issuer', 'must be absent: this limit does not count by issuer')
    const counted = rule.by === 'address' ? addressOf(value) : value
    return { rule, value: counted, keys: [await limitKeyOf(rule, { issuer: '', value: counted })] }
  }

  return [
    call({
      method: 'GET',
      path: '/limits',
      permission: 'limits:list',
      id: 'listLimits',
      summary: 'List limits and overrides',
      response: 'All limits of the policy, and a page of the overrides in force, newest first.',
      ...listing('overrides', overrides.list, overrideView, ownerViewOf, {
        name: 'limits',
        items: [...policyLimits.values()].map(limitViewOf),
        view: limitView,
      }),
    }),
    call({
      method: 'POST',
      path: '/limits/overrides',
      permission: 'limits:override',
      id: 'createLimitOverride',
      summary: 'Override a limit',
      description:
        "Replaces the policy's number of requests, and an earlier override of the same windows. " +
        'An isolate that has just refused a request applies the override within 5 seconds.',
      body: newOverrideSchema,
      example: { ...example, requests: 1_000, expiresInSeconds: 86_400 },
      status: 201,
      response: 'The override is in force.',
      reply: overrideView,
      async handle({ body, operator, scope, changed }) {
        const { value, keys } = await windowsOf(scope, body)
        const record = await overrides.create({
          ...body,
          value,
          issuer: body.issuer,
          windows: keys,
          createdBy: operator.subject,
        })
        changed('limit.override', record.id)
        return ownerViewOf(record)
      },
    }),
    call({
      method: 'DELETE',
      path: '/limits/overrides/:id',
      permission: 'limits:override',
      id: 'deleteLimitOverride',
      summary: 'Delete an override',
      params: idParams,
      response: "The override is deleted, and the policy's limit applies again.",
      async handle({ params: { id }, operator, scope, changed }) {
        if (operator.tenant !== undefined)
          await refuseOtherTenants(scope, await existing(overrides.find(id)))
        await existing(overrides.remove(id))
        changed('limit.lift', id)
      },
    }),
    call({
      method: 'POST',
      path: '/limits/reset',
      permission: 'limits:reset',
      id: 'resetLimit',
      summary: 'Reset a window',
      description: 'An isolate that has just refused a request applies the reset within 5 seconds.',
      body: windowResetSchema,
      example,
      response: 'The window is empty.',
      async handle({ body, scope, changed }) {
        const { rule, value, keys } = await windowsOf(scope, body)
        for (const key of keys) await windows.reset({ key, windowSeconds: rule.windowSeconds })
        changed('limit.reset', `${rule.name}:${value}`)
      },
    }),
  ]
}
