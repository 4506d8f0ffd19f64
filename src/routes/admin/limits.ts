/** Operators' calls that list the limits, and override or reset single windows. */
import * as z from 'zod'
import { limitKeyOf } from '../../admission/limit-key.ts'
import {
  type LimitOverrideRecord,
  newOverrideSchema,
  type WindowReset,
  windowResetSchema,
} from '../../admission/limit-override.ts'
import type { Principal } from '../../identity/principal.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { modeSchema } from '../../validators/mode.ts'
import { pageQuerySchema } from '../../validators/page.ts'
import { type AdminCall, adminGroup, inputRefused, timeOf, timeOrNull, unknownId } from './call.ts'
import { cursor, idParams, time } from './schemas.ts'
import { addressOf, issuersOf } from './scope.ts'
import type { AdminOptions } from './stores.ts'
import { ownersWithin, refuseElsewhere } from './tenant.ts'

const limitView = () =>
  z.strictObject({
    name: z.string(),
    limit: z.int().describe('units per window; requests, where one costs one'),
    windowSeconds: z.int(),
    by: z.enum(['subject', 'client', 'tenant', 'address', 'custom']),
    onUnavailable: z.enum(['deny', 'allow']),
    mode: modeSchema.describe('observe: it counts and refuses nobody'),
    engine: z.enum(['exact', 'upstash']).describe('upstash: windows are approximated'),
    cost: z.int().describe('units that a request takes'),
    lease: z
      .strictObject({ max: z.int(), ttlMs: z.int() })
      .nullable()
      .describe('units that an isolate may take ahead; null: none'),
  })
const overrideView = () =>
  z.strictObject({
    id: z.uuid(),
    limit: z.string(),
    value: z.string(),
    issuer: z.string().nullable().describe('null: an address, or every issuer that was trusted'),
    requests: z.int().describe('per window'),
    createdAt: time,
    createdBy: z.string().describe('subject of the operator'),
    expiresAt: time.nullable().describe('null: when it is lifted'),
  })

function limitViewOf(rule: PolicyLimit): z.infer<ReturnType<typeof limitView>> {
  const { name, limit, windowSeconds, by, onUnavailable, lease } = rule
  const { mode = 'enforce', engine = 'exact', cost = 1 } = rule
  return {
    ...{ name, limit, windowSeconds, onUnavailable, mode, engine, cost },
    by: typeof by === 'function' ? 'custom' : by,
    lease: lease === undefined ? null : { max: lease.max, ttlMs: lease.ttlMs },
  }
}

function overrideViewOf(record: LimitOverrideRecord): z.infer<ReturnType<typeof overrideView>> {
  const { id, limit, value, issuer, requests, createdBy } = record
  return {
    ...{ id, limit, value, issuer, requests, createdBy },
    createdAt: timeOf(record.createdAtSeconds),
    expiresAt: timeOrNull(record.expiresAtSeconds),
  }
}

/** Creates the calls below `/-/admin/limits`. `policyLimits` are all limits of the policy. */
export function limitCalls(
  { overrides, windows, tenantIssuers, issuers }: AdminOptions,
  policyLimits: ReadonlyMap<string, PolicyLimit>,
  limits: readonly PolicyLimit[],
): AdminCall[] {
  const call = adminGroup('Limits', limits)
  const [shown] = policyLimits.values()
  const value = shown?.by === 'address' ? '203.0.113.7' : 'alice'
  const example = { limit: shown?.name ?? 'standard', value }

  /**
   * Returns the issuers that own the windows of a call. Throws `Denied` for another tenant's
   * windows.
   */
  function ownersOf(
    { limit, value, issuer }: WindowReset,
    operator: Principal,
    name: 'limits:override' | 'limits:reset',
  ): readonly string[] {
    if (policyLimits.get(limit)?.by !== 'tenant') return issuersOf(issuer, issuers)
    const wall = { call: name, tenantIssuers }
    refuseElsewhere(operator, value, wall)
    return ownersWithin(operator, issuersOf(issuer, issuers), wall)
  }

  /** Throws `Denied` if an override also covers windows of another tenant. */
  async function refuseOtherTenants(operator: Principal, record: LimitOverrideRecord) {
    const { limit, value, windows: overridden } = record
    const rule = policyLimits.get(limit)
    if (rule?.by !== 'tenant') return
    const owners = ownersOf({ limit, value }, operator, 'limits:override')
    const own = await Promise.all(owners.map((issuer) => limitKeyOf(rule, { issuer, value })))
    if (!overridden.every((key) => own.includes(key)))
      refuseElsewhere(operator, undefined, { call: 'limits:override', tenantIssuers })
  }

  /** Returns the rule that a call names, its normalised value, and the keys of its windows. */
  async function windowsOf(
    { limit, value, issuer }: WindowReset,
    operator: Principal,
    name: 'limits:override' | 'limits:reset',
  ) {
    const rule = policyLimits.get(limit)
    if (rule === undefined) throw inputRefused('body', '/limit', 'is no limit of the policy')
    if (rule.by !== 'address' && typeof rule.by === 'string') {
      const owners = ownersOf({ limit, value, issuer }, operator, name)
      const keys = owners.map((owner) => limitKeyOf(rule, { issuer: owner, value }))
      return { rule, value, keys: await Promise.all(keys) }
    }
    if (issuer !== undefined)
      throw inputRefused('body', '/issuer', 'is not what this limit counts by')
    const whose = rule.by === 'address' ? addressOf(value) : value
    return { rule, value: whose, keys: [await limitKeyOf(rule, { issuer: '', value: whose })] }
  }

  return [
    call({
      method: 'GET',
      path: '/limits',
      permission: 'limits:list',
      id: 'listLimits',
      summary: 'List limits and overrides',
      query: pageQuerySchema,
      status: 200,
      answer: 'All limits of the policy, and a page of the overrides in force, newest first.',
      reply: () =>
        z.strictObject({
          limits: z.array(limitView()),
          overrides: z.array(overrideView()),
          cursor,
        }),
      async handle({ query }) {
        const { items, ...rest } = await overrides.list(query)
        const all = [...policyLimits.values()].map(limitViewOf)
        return { limits: all, overrides: items.map(overrideViewOf), ...rest }
      },
    }),
    call({
      method: 'POST',
      path: '/limits/overrides',
      permission: 'limits:override',
      id: 'createLimitOverride',
      summary: 'Give someone another limit',
      description:
        "Takes the place of the policy's number of requests, and of an earlier override of the " +
        'same windows. An isolate that has just refused follows within 5 seconds.',
      body: newOverrideSchema,
      example: { ...example, requests: 1_000, expiresInSeconds: 86_400 },
      status: 201,
      answer: 'In force.',
      reply: overrideView,
      async handle({ body, operator, by, changed }) {
        const { value, keys } = await windowsOf(body, operator, 'limits:override')
        const order = { ...body, value, issuer: body.issuer, windows: keys, createdBy: by }
        const record = await overrides.create(order)
        changed('limit.override', record.id)
        return overrideViewOf(record)
      },
    }),
    call({
      method: 'DELETE',
      path: '/limits/overrides/:id',
      permission: 'limits:override',
      id: 'deleteLimitOverride',
      summary: 'Lift an override',
      params: idParams,
      status: 204,
      answer: "Lifted: the policy's number holds again.",
      async handle({ params: { id }, operator, changed }) {
        if (operator.tenant !== undefined) {
          const override = await overrides.find(id)
          if (override === undefined) throw unknownId()
          await refuseOtherTenants(operator, override)
        }
        if (!(await overrides.remove(id))) throw unknownId()
        changed('limit.lift', id)
      },
    }),
    call({
      method: 'POST',
      path: '/limits/reset',
      permission: 'limits:reset',
      id: 'resetLimit',
      summary: 'Start a window anew',
      description: 'An isolate that has just refused follows within 5 seconds.',
      body: windowResetSchema,
      example,
      status: 204,
      answer: 'Nothing is counted in it any more.',
      async handle({ body, operator, changed }) {
        const { rule, value, keys } = await windowsOf(body, operator, 'limits:reset')
        for (const key of keys) await windows.reset({ key, windowSeconds: rule.windowSeconds })
        changed('limit.reset', `${rule.name}:${value}`)
      },
    }),
  ]
}
