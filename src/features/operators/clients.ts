/** Operators' calls that create, list, rotate and disable OAuth clients. */

import * as z from 'zod/mini'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import {
  createdByName,
  createdByOf,
  cursor,
  existing,
  inputRefused,
  time,
  timeOf,
} from '../../routes/admin/input.ts'
import {
  confinedTo,
  selectTenant,
  type TenantScope,
  withinTenant,
} from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { pageSize } from '../../validators/page.ts'
import { extended, integer, wholeNumber } from '../../validators/schema-parts.ts'
import {
  type Client,
  GRANT_TYPES,
  newClientSchema,
  unusableWithout,
} from '../authorization-server/client.ts'
import type { AdminContext } from './admin-context.ts'
import { ownGrantOf, refuseBeyond } from './grant.ts'
import { waitSchema } from './wait.ts'

/** One day. */
const MAX_GRACE_SECONDS = 86_400
/** A token request that read its client right before it was disabled ends within this time. */
const IN_FLIGHT_SECONDS = 60

const clientParams = z.strictObject({ clientId: z.uuid().check(z.toLowerCase()) })
/** The last id of a page, or a position among the clients of the configuration. */
const clientCursor = z
  .string()
  .check(
    z.regex(
      /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|configured:[0-9]{1,6})$/,
      'must be a cursor from an earlier page',
    ),
  )
const clientSecret = z.string().check(describe('returned only in this response'))

const clientView = () =>
  z.strictObject({
    clientId: z.uuid(),
    name: z.string(),
    grants: z.array(z.enum(GRANT_TYPES)),
    scopes: z.nullable(z.array(z.string())).check(describe('null: not restricted')),
    roles: z.array(z.string()),
    audiences: z.array(z.string()),
    tenant: z.nullable(z.string()),
    authentication: z.enum(['client_secret', 'private_key_jwt', 'none']),
    redirectUris: z
      .nullable(z.array(z.string()))
      .check(describe('null: the client cannot use /oauth/authorize')),
    tokenFormat: z.enum(['jwt', 'opaque']),
    tokenAlgorithm: z
      .nullable(z.string())
      .check(describe('null: the algorithm of the first active signing key')),
    accessTokenSeconds: z.nullable(integer()).check(describe("null: the policy's lifetime")),
    dpopBound: z.boolean(),
    profile: z.nullable(z.enum(['fapi2'])).check(describe('null: that of the server, if any')),
    disabled: z.boolean(),
    configured: z.boolean().check(describe('true: defined in CLIENTS; can only be changed there')),
    createdAt: z
      .nullable(time)
      .check(describe('null: defined in CLIENTS, which has no time of creation')),
    createdBy: z
      .nullable(z.string())
      .check(
        describe(
          'subject of the operator; null: no operator has created it, or an earlier version',
        ),
      ),
    createdByName,
  })

function viewOf(client: Client): z.infer<ReturnType<typeof clientView>> {
  const { name, tokenFormat, dpopBound, disabled, configured } = client
  return {
    clientId: client.id,
    name,
    grants: [...client.grants],
    scopes: client.scopes === undefined ? null : [...client.scopes],
    roles: [...client.roles],
    audiences: [...client.audiences],
    tenant: client.tenant ?? null,
    authentication: client.public
      ? 'none'
      : client.jwks === undefined
        ? 'client_secret'
        : 'private_key_jwt',
    redirectUris: client.redirectUris === undefined ? null : [...client.redirectUris],
    tokenFormat,
    tokenAlgorithm: client.tokenAlgorithm ?? null,
    accessTokenSeconds: client.accessTokenSeconds ?? null,
    dpopBound,
    profile: client.profile ?? null,
    disabled,
    configured,
    createdAt: configured ? null : timeOf(client.createdAtSeconds),
    createdBy: client.createdBy ?? null,
    ...(client.createdByName !== undefined && { createdByName: client.createdByName }),
  }
}

export function clientCalls(context: AdminContext): AdminCall[] {
  const { clients, bulkRevocation, publicUrl, revokedBeforeSeconds, signingKeys, now } = context
  const { waitUntilInForce } = context
  const call = adminGroup('Clients', context)

  /** Returns a client. Throws `Denied` (`not_found`) if it is unknown, disabled, or of another tenant. */
  async function enabled(scope: TenantScope, id: string): Promise<Client> {
    const client = await withinTenant(scope, clients.find(id))
    return existing(client.disabled ? undefined : client)
  }

  function refuseConfigured({ configured }: Client): void {
    if (configured)
      throw inputRefused('params', '/clientId', 'is defined in CLIENTS; change it there')
  }

  /** Without a signing key, every token request of such a client would fail. */
  function refuseUnsigned(algorithm: Client['tokenAlgorithm']): void {
    if (algorithm !== undefined && !signingKeys.some(({ alg }) => alg === algorithm))
      throw inputRefused('body', '/tokenAlgorithm', 'must be the algorithm of a signing key')
  }

  return [
    call({
      method: 'POST',
      path: '/clients',
      permission: 'clients:create',
      id: 'createClient',
      summary: 'Create an OAuth client',
      description:
        'The response contains the secret; the gateway stores only its hash. A client with `jwks` ' +
        'has no secret, nor has a public client. With the profile `fapi2` of the server, clients that act for users need `jwks`. A client with operator permissions that the caller does not have is ' +
        'refused (403).',
      body: newClientSchema,
      example: { name: 'billing', grants: ['client_credentials'], roles: ['reader'] },
      status: 201,
      response: 'The client can request tokens.',
      reply: () => extended(clientView(), { clientSecret: z.optional(clientSecret) }),
      async handle({ body, operator, scope, changed }) {
        refuseBeyond(operator, ownGrantOf(body), context)
        refuseUnsigned(body.tokenAlgorithm)
        const unusable = unusableWithout(body, context.serverProfile())
        if (unusable !== undefined) throw inputRefused('body', '/jwks', unusable)
        const tenant = selectTenant(scope, body.tenant)
        const { client, secret } = await clients.create({ ...body, tenant }, createdByOf(operator))
        changed('client.create', client.id)
        return { ...viewOf(client), ...(secret !== undefined && { clientSecret: secret }) }
      },
    }),
    call({
      method: 'GET',
      path: '/clients',
      permission: 'clients:list',
      id: 'listClients',
      summary: 'List OAuth clients',
      query: z.strictObject({ limit: pageSize, cursor: z.optional(clientCursor) }),
      response:
        'Clients without their secrets, newest first, clients of the configuration last. The list ' +
        'includes disabled clients. Operators with a tenant see the clients of their tenant.',
      reply: () => z.strictObject({ clients: z.array(clientView()), cursor }),
      async handle({ query, scope }) {
        const { clients: page, ...rest } = await clients.list(query, confinedTo(scope))
        return { clients: page.map(viewOf), ...rest }
      },
    }),
    call({
      method: 'GET',
      path: '/clients/:clientId',
      permission: 'clients:list',
      id: 'showClient',
      summary: 'Read an OAuth client',
      params: clientParams,
      response: 'The client, without its secrets.',
      reply: clientView,
      handle: async ({ params, scope }) => viewOf(await enabled(scope, params.clientId)),
    }),
    call({
      method: 'POST',
      path: '/clients/:clientId/secret',
      permission: 'clients:rotate',
      id: 'rotateClientSecret',
      summary: "Replace a client's secret",
      description:
        'A client with operator permissions that the caller does not have is refused (403).',
      params: clientParams,
      body: z.strictObject({
        graceSeconds: z
          .optional(wholeNumber(0, MAX_GRACE_SECONDS))
          .check(describe('how long the old secret stays valid; default: 0')),
      }),
      bodyOptional: true,
      example: { graceSeconds: 3_600 },
      problems: [409],
      response: 'The new secret, returned only in this response.',
      reply: () => z.strictObject({ clientId: z.uuid(), clientSecret }),
      async handle({ params: { clientId }, body, operator, scope, changed }) {
        const client = await enabled(scope, clientId)
        refuseConfigured(client)
        refuseBeyond(operator, ownGrantOf(client), context)
        if (client.public) throw inputRefused('params', '/clientId', 'is public and has no secret')
        if (client.jwks !== undefined)
          throw inputRefused('params', '/clientId', 'authenticates with jwks and has no secret')
        const secret = await existing(clients.rotateSecret(clientId, body.graceSeconds ?? 0))
        changed('client.rotate', clientId)
        return { clientId, clientSecret: secret }
      },
    }),
    call({
      method: 'DELETE',
      path: '/clients/:clientId',
      permission: 'clients:disable',
      id: 'disableClient',
      summary: 'Disable an OAuth client',
      description:
        'The client gets no more tokens, and its existing tokens are revoked from the next request ' +
        'on. Later calls for the client return 404, except for the list and for this call, which ' +
        'can be repeated.',
      params: clientParams,
      query: waitSchema,
      problems: [409],
      response: 'The client is disabled everywhere.',
      async handle({ params: { clientId }, query, scope, changed }) {
        // Includes disabled clients, so that a call that failed halfway can be repeated.
        const client = await withinTenant(scope, clients.find(clientId))
        refuseConfigured(client)
        // First prevent new tokens, then revoke the existing ones. A failure in between can be
        // repeated.
        await existing(clients.disable(clientId))
        // Recorded now: the client gets no more tokens, even if a later step fails.
        changed('client.disable', clientId)
        // Cut off the subject as well: other clients may have exchanged a token of this client.
        for (const kind of ['client', 'subject'] as const)
          await bulkRevocation.revokeBefore({
            kind,
            issuer: publicUrl,
            value: clientId,
            atSeconds: Math.floor(now() / 1000) + IN_FLIGHT_SECONDS,
            ttlSeconds: revokedBeforeSeconds + IN_FLIGHT_SECONDS,
          })
        await waitUntilInForce(query)
      },
    }),
  ]
}
