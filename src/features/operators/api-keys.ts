/** Operators' calls that create, list, change, rotate and disable API keys. */

import * as z from 'zod/mini'
import { isApiKey } from '../../access/tokens/api-key.ts'
import {
  API_KEY_STATUSES,
  type ApiKeyFilter,
  apiKeyChangeMembers,
  type ListedApiKey,
  MIN_GRACE_SECONDS,
  newApiKeySchema,
} from '../../access/tokens/api-key-record.ts'
import { usageDaySchema, usageRouteSchema } from '../../audit/usage.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import {
  cursor,
  existing,
  idParams,
  inputRefused,
  requireConfigured,
  time,
} from '../../routes/admin/input.ts'
import {
  confinedTo,
  refuseForeignClientIds,
  selectTenant,
  type TenantScope,
  withinTenant,
} from '../../routes/admin/tenant.ts'
import { period, resolvePeriod, timesOf, tooMuch } from '../../routes/admin/usage-period.ts'
import { describe } from '../../validators/checks.ts'
import { name } from '../../validators/names.ts'
import { type PageQuery, pageQuerySchema } from '../../validators/page.ts'
import { digits, extended, wholeNumber } from '../../validators/schema-parts.ts'
import { planName } from '../plans/assignment.ts'
import type { AdminContext } from './admin-context.ts'
import { describedKeyView, viewOf } from './api-key-view.ts'
import { issuableSecond, refuseBeyond, refuseRevoked, refuseUnknownRoles } from './grant.ts'
import { createKeyPlans } from './plans.ts'
import { waitSchema } from './wait.ts'

const apiKey = z
  .string()
  .check(z.regex(/^pk_[0-9A-Za-z]{49}$/), describe('returned only in this response'))

/** An example of the form, which is no key of any gateway. */
const EXAMPLE_KEY = 'pk_00000000000000000000000000000000000000000001zqVSB'
const MAX_GRACE_SECONDS = 86_400
/** D1 permits 100 parameters in a query. */
const MAX_USAGE_KEYS = 50
const USAGE_PAGE = /^(?:[1-9]|[1-4]\d|50)$/
const reference = name(256).check(describe('the entry `reference` of the metadata'))
const graceSeconds = wholeNumber(0, MAX_GRACE_SECONDS).check(
  z.refine(
    (seconds) => seconds === 0 || seconds >= MIN_GRACE_SECONDS,
    'must be 0, or at least 300',
  ),
)

export function apiKeyCalls(context: AdminContext): AdminCall[] {
  const { apiKeys, clients, waitUntilInForce } = context
  const call = adminGroup('API keys', context)
  const plans = createKeyPlans(context)
  const shown = (key: ListedApiKey) => viewOf(key, context.now())
  const described = async (key: ListedApiKey) => ({
    ...shown(key),
    plan: key.plan ?? (await plans.planOf(key.id)),
  })

  /** Returns a page of keys with their plans: of the tenant of the operator, if it has one. */
  async function listed(
    { limit, cursor: after, tenant, ...wanted }: PageQuery & ApiKeyFilter,
    scope: TenantScope,
  ) {
    const own = selectTenant(scope, tenant)
    const filter = { ...wanted, tenant: own, hidesOthers: confinedTo(scope) !== undefined }
    const { items, ...rest } = await apiKeys.list({ limit, cursor: after }, filter)
    const planOf = await context.plansOfKeys(items.map(({ id }) => id))
    const views = items.map((key, index) => ({
      ...shown(key),
      plan: key.plan ?? planOf[index] ?? null,
    }))
    return { items: views, ...rest }
  }

  return [
    call({
      method: 'POST',
      path: '/api-keys',
      permission: 'api-keys:create',
      id: 'createApiKey',
      summary: 'Create an API key',
      description:
        'The response contains the key; the gateway stores only its hash. Roles with operator ' +
        'permissions that the caller does not have are refused (403). A plan requires the permission ' +
        '`portcullis:plans:assign` as well.',
      body: extended(newApiKeySchema, { plan: z.optional(planName) }),
      example: { name: 'nightly report', subject: 'reporter', roles: ['reader'] },
      status: 201,
      response: 'The key is valid everywhere from the next request on.',
      reply: () => extended(describedKeyView(), { apiKey }),
      async handle({ body: { plan, ...body }, operator, scope, changed }) {
        plans.refuseChange(plan, scope)
        refuseUnknownRoles(operator, body.roles ?? [], context)
        refuseBeyond(operator, { roles: body.roles ?? [], scopes: body.scopes ?? [] }, context)
        const tenant = selectTenant(scope, body.tenant)
        await refuseForeignClientIds(scope, [body.subject], clients)
        const ordered = { ...body, tenant }
        const second = await issuableSecond(operator, ordered, context)
        const { key, secret } = await apiKeys.create(
          ordered,
          operator.subject,
          second,
          operator.signIn?.name,
        )
        changed('api-key.create', key.id)
        if (plan !== undefined) await plans.set(key.id, plan, operator.subject)
        const view = shown({ ...key, lastUsedAtSeconds: null })
        return { ...view, plan: plan ?? null, apiKey: secret }
      },
    }),
    call({
      method: 'GET',
      path: '/api-keys',
      permission: 'api-keys:list',
      id: 'listApiKeys',
      summary: 'List API keys',
      description:
        'Keys that have expired or were revoked are listed for 100 days, unless the gateway has another ' +
        '`endedApiKeyDays`. With a filter, a page may have fewer keys than its limit, even none; the last ' +
        'page has no `cursor`. Operators with a tenant see the keys of their tenant.',
      query: extended(pageQuerySchema, {
        tenant: z.optional(name(256)),
        subject: z.optional(name(255)),
        reference: z.optional(reference),
        status: z.optional(z.enum(API_KEY_STATUSES)),
      }),
      response: 'Keys without their secrets, newest first.',
      reply: () => z.strictObject({ apiKeys: z.array(describedKeyView()), cursor }),
      async handle({ query, scope }) {
        const { items, ...rest } = await listed(query, scope)
        return { apiKeys: items, ...rest }
      },
    }),
    call({
      method: 'POST',
      path: '/api-key-lookups',
      permission: 'api-keys:list',
      id: 'lookUpApiKey',
      summary: 'Find the id of an API key',
      description:
        'To revoke a key that was found in a log. Finds valid keys, also those in a grace period. ' +
        'No event records the key.',
      changes: false,
      body: z.strictObject({
        apiKey: z
          .string()
          .check(
            z.refine(
              isApiKey,
              'must be an API key without a mistyped character: pk_ and 49 characters',
            ),
            describe('the key'),
          ),
      }),
      example: { apiKey: EXAMPLE_KEY },
      problems: [404],
      response: 'The key without its secrets.',
      reply: () =>
        extended(describedKeyView(), {
          current: z.boolean().check(describe('false: an old key in its grace period')),
        }),
      async handle({ body, scope }) {
        const found = await apiKeys.identify(body.apiKey)
        const key = await withinTenant(scope, Promise.resolve(found?.key))
        return { ...(await described(key)), current: found?.isPresent === true }
      },
    }),
    call({
      method: 'GET',
      path: '/api-keys/:id',
      permission: 'api-keys:list',
      id: 'getApiKey',
      summary: 'Read an API key',
      params: idParams,
      response: 'The key without its secrets.',
      reply: describedKeyView,
      async handle({ params: { id }, scope }) {
        return described(await withinTenant(scope, apiKeys.find(id)))
      },
    }),
    call({
      method: 'PATCH',
      path: '/api-keys/:id',
      permission: 'api-keys:update',
      id: 'updateApiKey',
      summary: 'Change an API key',
      description:
        'An absent member stays as it is. A new expiry is at least 300 seconds ahead, because isolates ' +
        'cache keys; to end a key at once, disable it. The expiry of a revoked key does not change ' +
        '(422). A key with operator permissions that the caller does not have is refused (403). A plan ' +
        'requires the permission `portcullis:plans:assign` as well; null removes it.',
      params: idParams,
      body: z.strictObject({ ...apiKeyChangeMembers, plan: z.optional(z.nullable(planName)) }),
      example: { metadata: { team: 'billing' }, expiresInSeconds: 7_776_000 },
      problems: [409],
      response: 'The changed key. A new expiry applies everywhere within five minutes.',
      reply: describedKeyView,
      async handle({ params: { id }, body: { plan, ...body }, operator, scope, changed }) {
        plans.refuseChange(plan, scope)
        const key = await withinTenant(scope, apiKeys.find(id))
        refuseBeyond(operator, key, context)
        if (body.expiresInSeconds !== undefined) await refuseRevoked(key, context)
        const updated = await existing(apiKeys.update(id, body))
        changed('api-key.update', id)
        if (plan !== undefined) await plans.set(id, plan, operator.subject)
        return described(updated)
      },
    }),
    call({
      method: 'GET',
      path: '/api-keys/:id/usage',
      permission: 'api-keys:usage',
      id: 'readApiKeyUsage',
      summary: 'Read the usage of an API key',
      description:
        'Counts the events of the audit trail, also those of a key that has ended. Events arrive one or ' +
        'two seconds after the decision, and are deleted at the end of their retention.',
      params: idParams,
      query: z.strictObject(period),
      response: 'The days with requests (UTC), the earliest first.',
      reply: () => z.strictObject({ since: time, until: time, days: z.array(usageDaySchema) }),
      async handle({ params: { id }, query, scope }) {
        // The audit trail does not say to which tenant a key belonged.
        if (confinedTo(scope) !== undefined) await withinTenant(scope, apiKeys.find(id))
        const asked = resolvePeriod(query, context.now())
        const days = await requireConfigured(context.auditUsage).usageOf(id, asked)
        if (days === undefined) throw tooMuch()
        return { ...timesOf(asked), days }
      },
    }),
    call({
      method: 'GET',
      path: '/usage',
      permission: 'api-keys:usage',
      id: 'readUsage',
      summary: 'Read the usage of a customer, by key and route',
      description:
        'Finds the API keys of a `tenant`, a `subject` or a `reference`, at least one of which is required ' +
        'of operators without a tenant. Keys that have ended are included for as long as they are listed. ' +
        'Each key is in one page. A page may have fewer keys than its limit, even none; the last page has ' +
        'no `cursor`. For the pages of one bill, name `since` and `until`. Counts as the usage of a key.',
      query: z.strictObject({
        ...pageQuerySchema.shape,
        ...period,
        tenant: z.optional(name(256)),
        subject: z.optional(name(255)),
        reference: z.optional(reference),
        limit: digits(USAGE_PAGE, 'must be a whole number from 1 to 50', MAX_USAGE_KEYS).check(
          describe('from 1 to 50 keys; default 50'),
        ),
      }),
      response: 'A page of the keys, newest first, each with its requests by route.',
      reply: () =>
        z.strictObject({
          since: time,
          until: time,
          keys: z.array(extended(describedKeyView(), { routes: z.array(usageRouteSchema) })),
          cursor,
        }),
      async handle({ query: { since, until, ...query }, scope }) {
        const usage = requireConfigured(context.auditUsage)
        const { subject, reference: of } = query
        const own = selectTenant(scope, query.tenant)
        if (own === undefined && subject === undefined && of === undefined)
          throw inputRefused('query', '', 'must name a tenant, a subject or a reference')
        const asked = resolvePeriod({ since, until }, context.now())
        const { items, ...rest } = await listed(query, scope)
        const ids = items.map(({ id }) => id)
        const routes = await usage.routesOf(ids, asked)
        if (routes === undefined) throw tooMuch()
        const keys = items.map((key) => ({ ...key, routes: routes.get(key.id) ?? [] }))
        return { ...timesOf(asked), keys, ...rest }
      },
    }),
    call({
      method: 'POST',
      path: '/api-keys/:id/secret',
      permission: 'api-keys:rotate',
      id: 'rotateApiKey',
      summary: 'Replace the secret of an API key',
      description:
        'Without a grace period, old secrets are invalid everywhere as soon as the call returns. At ' +
        'most eight old secrets stay valid. The expiry of the key does not change. A key with ' +
        'operator permissions that the caller does not have is refused (403).',
      params: idParams,
      body: z.strictObject({
        graceSeconds: z
          .optional(graceSeconds)
          .check(describe('how long the old secrets stay valid; default: 0')),
      }),
      bodyOptional: true,
      example: { graceSeconds: 3_600 },
      problems: [409],
      response: 'The new key, returned only in this response.',
      reply: () => z.strictObject({ id: z.uuid(), apiKey }),
      async handle({ params: { id }, body, operator, scope, changed }) {
        const key = await withinTenant(scope, apiKeys.find(id))
        refuseBeyond(operator, key, context)
        const grant = { subject: key.subject, tenant: key.tenant ?? undefined }
        const issuedAtSeconds = await issuableSecond(operator, grant, context)
        const options = { graceSeconds: body.graceSeconds ?? 0, issuedAtSeconds }
        const { secret } = await existing(apiKeys.rotate(id, options))
        changed('api-key.rotate', id)
        return { id, apiKey: secret }
      },
    }),
    call({
      method: 'DELETE',
      path: '/api-keys/:id',
      permission: 'api-keys:disable',
      id: 'disableApiKey',
      summary: 'Disable an API key',
      params: idParams,
      query: waitSchema,
      description:
        'The key stays listed as revoked, with the plan that it had. It cannot be restored.',
      problems: [409],
      response: 'The key is invalid everywhere, with all its secrets.',
      async handle({ params: { id }, query, operator, scope, changed }) {
        if (confinedTo(scope) !== undefined) await withinTenant(scope, apiKeys.find(id))
        const plan = (await plans.planOf(id)) ?? undefined
        const ended = await apiKeys.end(id, { by: operator.subject, plan })
        // Also if an earlier call has ended the key, and failed here.
        await plans.remove(id)
        await existing(ended)
        changed('api-key.disable', id)
        await waitUntilInForce(query)
      },
    }),
  ]
}
