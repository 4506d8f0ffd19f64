/** Operators' calls that list the limits, and override or reset single windows. */

import * as z from 'zod/mini'
import { countsByMember, limitKeyOf } from '../../access/admission/limit-key.ts'
import {
  type LimitOverrideRecord,
  newOverrideSchema,
  type WindowReset,
  windowResetSchema,
} from '../../access/admission/limit-override.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import {
  createdByOf,
  existing,
  found,
  idParams,
  inputRefused,
  listing,
  ownerView,
  ownerViewOf,
  time,
  timeOrNull,
} from '../../routes/admin/input.ts'
import {
  confinedTo,
  listedFor,
  normalizeValue,
  ownedBy,
  refuseRemoval,
  refuseTenant,
  type TenantScope,
  withinTenant,
} from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { modeSchema } from '../../validators/mode.ts'
import { extended, integer } from '../../validators/schema-parts.ts'
import type { AdminContext } from './admin-context.ts'

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
    reason: z.optional(z.string()),
  })
const replaces = z.optional(
  z.nullable(z.strictObject({ requests: integer(), expiresAt: z.nullable(time) })),
)

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
  const { overrides, windows, issuers, policyLimits, clients, apiKeys, publicUrl } = context
  const call = adminGroup('Limits', context)
  const [firstLimit] = policyLimits.values()
  const example = {
    limit: firstLimit?.name ?? 'standard',
    value: firstLimit?.by === 'address' ? '203.0.113.7' : 'alice',
  }

  /** An override by tenant concerns this tenant, also if the platform has ordered it. */
  const ownedOf = (record: LimitOverrideRecord) => {
    const isByTenant = policyLimits.get(record.limit)?.by === 'tenant'
    const { tenant = isByTenant ? record.value : undefined } = record
    return { tenant, owner: record.owner, issuers: record.issuers ?? [] }
  }

  /**
   * Returns the owner of a call about a window, and the issuers that it covers. An operator with a tenant
   * names windows that count no other tenant: of its own, of its members, and of its clients and API keys.
   */
  async function findOwner(scope: TenantScope, rule: PolicyLimit, window: WindowReset) {
    const { by } = rule
    const { value, issuer } = window
    if (window.tenant !== undefined && !(by === 'subject' && countsByMember(rule)))
      throw inputRefused('body', '/tenant', 'must be absent: this limit does not count by member')
    if (by === 'tenant') return ownedBy(scope, { issuer, tenant: value }, issuers)
    const own = confinedTo(scope)
    if (own === undefined) return ownedBy(scope, { issuer, tenant: window.tenant }, issuers)
    if (by === 'client') await withinTenant(scope, clients.find(value))
    else if (by === 'key') await withinTenant(scope, apiKeys.find(value))
    else if (by !== 'subject' || !countsByMember(rule)) refuseTenant(scope)
    // The gateway vouches for its API keys, and issues the tokens of its clients.
    const named = by === 'subject' ? issuer : publicUrl
    return ownedBy(scope, { issuer: named, tenant: window.tenant }, issuers)
  }

  /** Returns the rule that a call names, its normalized value, the keys of its windows, and their owner. */
  async function findWindows(scope: TenantScope, window: WindowReset) {
    const rule = policyLimits.get(window.limit)
    if (rule === undefined)
      throw inputRefused('body', '/limit', 'must be the name of a limit of the policy')
    const counted = rule.by === 'address' ? normalizeValue(window.value) : window.value
    if (rule.by === 'address' || typeof rule.by === 'function') {
      refuseTenant(scope)
      for (const member of ['issuer', 'tenant'] as const)
        if (window[member] !== undefined)
          throw inputRefused(
            'body',
            `/${member}`,
            `must be absent: this limit does not count by ${member}`,
          )
      const key = await limitKeyOf(rule, { issuer: '', value: counted })
      return { rule, value: counted, keys: [key], owned: { tenant: undefined, issuers: [] } }
    }
    const owned = await findOwner(scope, rule, window)
    const keys = owned.issuers.map((owner) =>
      limitKeyOf(rule, { issuer: owner, value: counted, tenant: owned.tenant }),
    )
    return { rule, value: counted, keys: await Promise.all(keys), owned }
  }

  async function replacedBy(windows: readonly string[]) {
    const owners = await Promise.all(windows.map(overrides.ownerOf))
    const first = owners.find((each) => each !== undefined)
    if (first === undefined) return { replaces: null }
    const { requests, expiresAtSeconds } = first
    return { replaces: { requests, expiresAt: timeOrNull(expiresAtSeconds) } }
  }

  return [
    call({
      method: 'GET',
      path: '/limits',
      permission: 'limits:list',
      id: 'listLimits',
      summary: 'List limits and overrides',
      description: 'Operators with a tenant see the overrides within their tenant.',
      response: 'All limits of the policy, and a page of the overrides in force, newest first.',
      ...listing('overrides', overrides.list, overrideView, ownerViewOf, {
        listedFor: (scope) => listedFor(scope, ownedOf),
        first: {
          name: 'limits',
          items: [...policyLimits.values()].map(limitViewOf),
          view: limitView,
        },
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
        'An isolate that has just refused a request applies the override within 5 seconds. Of an override ' +
        'for a subject and one for the same subject as a member of a tenant, the smaller one applies.',
      body: newOverrideSchema,
      example: { ...example, requests: 1_000, expiresInSeconds: 86_400 },
      status: 201,
      response: 'The override is in force.',
      reply: () => extended(overrideView(), { replaces }),
      async handle({ body, operator, scope, changed }) {
        const { value, keys, owned } = await findWindows(scope, body)
        const before = await found(replacedBy(keys))
        const record = await overrides.create({
          ...body,
          value,
          issuer: body.issuer,
          ...(owned.tenant !== undefined && owned),
          windows: keys,
          ...createdByOf(operator),
        })
        changed('limit.override', record.id)
        return { ...ownerViewOf(record), ...before }
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
      description: 'Only operators without a tenant delete an override that the platform owns.',
      async handle({ params: { id }, scope, changed }) {
        if (confinedTo(scope) !== undefined)
          refuseRemoval(scope, await existing(overrides.find(id)), ownedOf)
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
      description:
        'An isolate that has just refused a request applies the reset within 5 seconds. A window by ' +
        'subject is that of the subject without a tenant, or as a member of `tenant`.',
      body: windowResetSchema,
      example,
      response: 'The window is empty.',
      async handle({ body, scope, changed }) {
        const { rule, value, keys } = await findWindows(scope, body)
        for (const key of keys) await windows.reset({ key, windowSeconds: rule.windowSeconds })
        changed('limit.reset', `${rule.name}:${value}`)
      },
    }),
  ]
}
