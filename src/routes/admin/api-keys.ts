/** Operators' calls that create, list, rotate and disable API keys. */
import * as z from 'zod'
import type { PolicyLimit } from '../../policy/policy.ts'
import { type ApiKey, newApiKeySchema } from '../../tokens/api-key-record.ts'
import { pageQuerySchema } from '../../validators/page.ts'
import { type AdminCall, adminGroup, timeOf, timeOrNull, unknownId } from './call.ts'
import { issuableSecond, refuseBeyond } from './grant.ts'
import { cursor, idParams, time } from './schemas.ts'
import type { AdminOptions } from './stores.ts'
import { refuseElsewhere, refuseOthersNames, tenantOf } from './tenant.ts'

const apiKeyView = () =>
  z.strictObject({
    id: z.uuid(),
    name: z.string(),
    subject: z.string(),
    roles: z.array(z.string()),
    scopes: z.array(z.string()),
    tenant: z.string().nullable(),
    tokenId: z.uuid().describe('of the present key, in audit events and revocations'),
    createdAt: time,
    createdBy: z.string().describe('subject of the operator'),
    rotatedAt: time,
    expiresAt: time.nullable().describe('null: when an operator ends it'),
  })
const apiKey = z
  .string()
  .regex(/^pk_[0-9A-Za-z]{49}$/)
  .describe('shown this once')

/** Returns everything but the hash. */
function viewOf(key: ApiKey): z.infer<ReturnType<typeof apiKeyView>> {
  const { id, name, subject, roles, scopes, tenant, tokenId, createdBy } = key
  return {
    ...{ id, name, subject, roles, scopes, tenant, tokenId, createdBy },
    createdAt: timeOf(key.createdAtSeconds),
    rotatedAt: timeOf(key.rotatedAtSeconds),
    expiresAt: timeOrNull(key.expiresAtSeconds),
  }
}

/** Creates the calls below `/-/admin/api-keys`. */
export function apiKeyCalls(options: AdminOptions, limits: readonly PolicyLimit[]): AdminCall[] {
  const { apiKeys, clients } = options
  const tenantIssuers = options.tenantIssuers
  const call = adminGroup('API keys', limits)
  return [
    call({
      method: 'POST',
      path: '/api-keys',
      permission: 'api-keys:create',
      id: 'createApiKey',
      summary: 'Hand out an API key',
      description:
        'The key is shown in this answer and kept nowhere. Roles that can do more here than the ' +
        'caller are refused (403).',
      body: newApiKeySchema,
      example: { name: 'nightly report', subject: 'reporter', roles: ['reader'] },
      status: 201,
      answer: 'Good with the next request, everywhere.',
      reply: () => apiKeyView().extend({ apiKey }),
      async handle({ body, operator, by, changed }) {
        refuseBeyond(operator, { roles: body.roles ?? [], scopes: body.scopes ?? [] }, options)
        const wall = { call: 'api-keys:create', tenantIssuers, clients } as const
        const tenant = tenantOf(operator, body.tenant, wall)
        await refuseOthersNames(operator, [body.subject], wall)
        const described = { ...body, tenant }
        const second = await issuableSecond(operator, described, options)
        const { key, secret } = await apiKeys.create(described, by, second)
        changed('api-key.create', key.id)
        return { ...viewOf(key), apiKey: secret }
      },
    }),
    call({
      method: 'GET',
      path: '/api-keys',
      permission: 'api-keys:list',
      id: 'listApiKeys',
      summary: 'List API keys',
      query: pageQuerySchema,
      status: 200,
      answer: 'Keys that are good, newest first; never the keys themselves.',
      reply: () => z.strictObject({ apiKeys: z.array(apiKeyView()), cursor }),
      async handle({ query }) {
        const { items, ...rest } = await apiKeys.list(query)
        return { apiKeys: items.map(viewOf), ...rest }
      },
    }),
    call({
      method: 'POST',
      path: '/api-keys/:id/secret',
      permission: 'api-keys:rotate',
      id: 'rotateApiKey',
      summary: 'Replace an API key',
      description:
        'The old key ends with this call, everywhere. Its life is not extended. A key that can do ' +
        'more here than the caller stays as it is (403).',
      params: idParams,
      body: z.strictObject({}),
      bodyOptional: true,
      status: 200,
      answer: 'The new key, shown this once.',
      reply: () => z.strictObject({ id: z.uuid(), apiKey }),
      async handle({ params: { id }, operator, changed }) {
        const key = await apiKeys.find(id)
        if (key === undefined) throw unknownId()
        refuseElsewhere(operator, key.tenant, { call: 'api-keys:rotate', tenantIssuers })
        refuseBeyond(operator, key, options)
        const { subject, tenant } = key
        const whose = { subject, tenant: tenant ?? undefined }
        const second = await issuableSecond(operator, whose, options)
        const issued = await apiKeys.rotate(id, second)
        if (issued === undefined) throw unknownId()
        changed('api-key.rotate', id)
        return { id, apiKey: issued.secret }
      },
    }),
    call({
      method: 'DELETE',
      path: '/api-keys/:id',
      permission: 'api-keys:disable',
      id: 'disableApiKey',
      summary: 'End an API key',
      params: idParams,
      status: 204,
      answer: 'Ended, everywhere.',
      async handle({ params: { id }, operator, changed }) {
        if (operator.tenant !== undefined) {
          const key = await apiKeys.find(id)
          if (key === undefined) throw unknownId()
          refuseElsewhere(operator, key.tenant, { call: 'api-keys:disable', tenantIssuers })
        }
        if (!(await apiKeys.end(id))) throw unknownId()
        changed('api-key.disable', id)
      },
    }),
  ]
}
