/** The operators' call that reads what an API key has left of its limits. */
import * as z from 'zod/mini'
import type { LimitRequest } from '../../access/admission/limit.ts'
import { windowOfPrincipal } from '../../access/admission/limit-key.ts'
import { readOnlyStore } from '../../access/admission/read-only-store.ts'
import { createRedisAdmissionStore } from '../../access/admission/redis/store.ts'
import type { Principal } from '../../access/principal.ts'
import { NOTHING_REVOCABLE } from '../../access/revocation/revocation.ts'
import type { ApiKey } from '../../access/tokens/api-key-record.ts'
import { createApiKeys } from '../../access/tokens/redis/api-keys.ts'
import { Unavailable } from '../../errors.ts'
import type { FeatureParts } from '../../gateway/feature.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import type { CallFrame } from '../../routes/admin/frame.ts'
import { idParams, time } from '../../routes/admin/input.ts'
import { withinTenant } from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { integer } from '../../validators/schema-parts.ts'

export const keyLimitsView = z.strictObject({
  limits: z.array(
    z.strictObject({
      name: z.string(),
      limit: integer().check(
        describe('in force: of the plan or the override; 0: the plan has none'),
      ),
      remaining: integer(),
      resetsAt: time.check(describe('when more units become free')),
    }),
  ),
})

/** Limits that count API keys, or what a key belongs to. */
const COUNTED = new Set<unknown>(['key', 'subject', 'client', 'tenant'])

export function keyLimitCalls(parts: FeatureParts): (frame: CallFrame) => readonly AdminCall[] {
  const { redis, now, publicUrl, policy } = parts
  const { admissionStore: createStore = createRedisAdmissionStore } = parts
  const store = readOnlyStore(createStore(redis))
  const apiKeys = createApiKeys({ redis, publicUrl, now })
  const rules = [...policy.limits.values()].filter(
    (rule): rule is PolicyLimit & { readonly by: 'key' | 'subject' | 'client' | 'tenant' } =>
      COUNTED.has(rule.by) && typeof rule.engine !== 'object',
  )

  async function requestOf(rule: (typeof rules)[number], principal: Principal) {
    const request: LimitRequest = { rule, ...(await windowOfPrincipal(rule, principal)) }
    return (await rule.meter?.complete(request, principal)) ?? request
  }

  return (frame) => [
    adminGroup(
      'API keys',
      frame,
    )({
      method: 'GET',
      path: '/api-keys/:id/limits',
      permission: 'api-keys:usage',
      id: 'readApiKeyLimits',
      summary: 'Read what an API key has left of its limits',
      description:
        'The limits of the policy that count by key, subject, client or tenant. Reads the windows, and counts ' +
        'nothing. Units that an isolate has leased are used.',
      params: idParams,
      response: 'The limits, in the order of the policy.',
      reply: () => keyLimitsView,
      async handle({ params: { id }, scope }) {
        const key = await withinTenant(scope, apiKeys.find(id))
        const principal = principalOf(key, publicUrl)
        const limits = await Promise.all(rules.map((rule) => requestOf(rule, principal)))
        if (limits.length === 0) return { limits: [] }
        const { subject: caller } = principal
        const query = { caller, revocation: NOTHING_REVOCABLE, bans: [], limits, nowMs: now() }
        const { limits: states } = await store.consult(query)
        return {
          limits: states.flatMap((state) => {
            if (state instanceof Unavailable) throw state
            if (state === undefined) return []
            const { rule, limit, remaining, resetMs } = state
            return [
              { name: rule.name, limit, remaining, resetsAt: new Date(resetMs).toISOString() },
            ]
          }),
        }
      },
    }),
  ]
}

/** Returns the caller that presents the key. */
const principalOf = (
  { id, subject, tenant, roles, scopes }: ApiKey,
  issuer: string,
): Principal => ({
  issuer,
  tokenIssuer: issuer,
  subject,
  key: id,
  client: undefined,
  tenant: tenant ?? undefined,
  session: undefined,
  roles,
  scopes,
  tokenId: undefined,
  tokenIdHash: undefined,
  confirmation: undefined,
  issuedAtSeconds: 0,
  expiresAtSeconds: Number.POSITIVE_INFINITY,
})
