/** Operators' calls that create, list, rotate and disable OAuth clients. */
import * as z from 'zod'
import { type Client, newClientSchema } from '../../oauth/client.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { pageSize } from '../../validators/page.ts'
import { type AdminCall, adminGroup, inputRefused, unknownId } from './call.ts'
import { clientView, viewOf } from './client-view.ts'
import { ownGrantOf, refuseBeyond } from './grant.ts'
import { cursor } from './schemas.ts'
import type { AdminOptions } from './stores.ts'
import { refuseElsewhere, tenantOf } from './tenant.ts'

/** One day. */
const MAX_GRACE_SECONDS = 86_400
/** A token request that found its client right before it was disabled ends within this time. */
const IN_FLIGHT_SECONDS = 60

const clientParams = z.strictObject({ clientId: z.uuid().toLowerCase() })
/** The last id of a page, or a position among the clients of the configuration. */
const clientCursor = z
  .string()
  .regex(
    /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|configured:[0-9]{1,6})$/,
    'is not from an answer',
  )
const clientSecret = z.string().describe('shown this once')
/** `/-/admin/clients`. */
export function clientCalls(options: AdminOptions, limits: readonly PolicyLimit[]): AdminCall[] {
  const { clients, bulkRevocation, publicUrl, revokedBeforeSeconds, signingKeys, now } = options
  const tenantIssuers = options.tenantIssuers
  const call = adminGroup('Clients', limits)

  /** Returns a client. Throws `Denied` (`route_unknown`) if it is unknown or disabled. */
  async function existing(id: string): Promise<Client> {
    const client = await clients.find(id)
    if (client === undefined || client.disabled) throw unknownId()
    return client
  }

  function changeable(client: Client | undefined): Client {
    if (client === undefined) throw unknownId()
    if (client.configured) throw inputRefused('params', '/clientId', 'is configured in CLIENTS')
    return client
  }

  /**
   * Refuses an algorithm without a signing key: every token request of such a client would fail.
   */
  function refuseUnsigned(algorithm: Client['tokenAlgorithm']): void {
    if (algorithm !== undefined && !signingKeys.some(({ alg }) => alg === algorithm))
      throw inputRefused('body', '/tokenAlgorithm', 'is that of no signing key')
  }

  return [
    call({
      method: 'POST',
      path: '/clients',
      permission: 'clients:create',
      id: 'createClient',
      summary: 'Make an OAuth client',
      description:
        'Its secret is shown in this answer and kept nowhere; with `jwks` it has none. One that ' +
        'could do more here than the caller is refused (403).',
      body: newClientSchema,
      example: { name: 'billing', grants: ['client_credentials'], roles: ['reader'] },
      status: 201,
      answer: 'May ask for tokens.',
      reply: () => clientView().extend({ clientSecret: clientSecret.optional() }),
      async handle({ body, operator, changed }) {
        refuseBeyond(operator, ownGrantOf(body), options)
        refuseUnsigned(body.tokenAlgorithm)
        const tenant = tenantOf(operator, body.tenant, { call: 'clients:create', tenantIssuers })
        const { client, secret } = await clients.create({ ...body, tenant })
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
      query: z.strictObject({ limit: pageSize, cursor: clientCursor.optional() }),
      status: 200,
      answer:
        'Clients, newest first and those of the configuration last; never a secret. Those that were ' +
        'ended are in it as `disabled`.',
      reply: () => z.strictObject({ clients: z.array(clientView()), cursor }),
      async handle({ query }) {
        const { clients: page, ...rest } = await clients.list(query)
        return { clients: page.map(viewOf), ...rest }
      },
    }),
    call({
      method: 'GET',
      path: '/clients/:clientId',
      permission: 'clients:list',
      id: 'showClient',
      summary: 'Show an OAuth client',
      params: clientParams,
      status: 200,
      answer: 'The client, without its secrets.',
      reply: clientView,
      handle: async ({ params }) => viewOf(await existing(params.clientId)),
    }),
    call({
      method: 'POST',
      path: '/clients/:clientId/secret',
      permission: 'clients:rotate',
      id: 'rotateClientSecret',
      summary: "Replace a client's secret",
      params: clientParams,
      body: z.strictObject({
        graceSeconds: z
          .int()
          .min(0)
          .max(MAX_GRACE_SECONDS)
          .optional()
          .describe('how long the old secret goes on; default 0'),
      }),
      bodyOptional: true,
      example: { graceSeconds: 3_600 },
      status: 200,
      answer: 'The new secret, shown this once.',
      reply: () => z.strictObject({ clientId: z.uuid(), clientSecret }),
      description: 'One that can do more here than the caller keeps its secret (403).',
      async handle({ params: { clientId }, body: { graceSeconds = 0 }, operator, changed }) {
        const client = changeable(await existing(clientId))
        refuseElsewhere(operator, client.tenant, { call: 'clients:rotate', tenantIssuers })
        refuseBeyond(operator, ownGrantOf(client), options)
        if (client.jwks !== undefined)
          throw inputRefused('params', '/clientId', 'has keys, not a secret')
        const secret = await clients.rotateSecret(clientId, graceSeconds)
        if (secret === undefined) throw unknownId()
        changed('client.rotate', clientId)
        return { clientId, clientSecret: secret }
      },
    }),
    call({
      method: 'DELETE',
      path: '/clients/:clientId',
      permission: 'clients:disable',
      id: 'disableClient',
      summary: 'End an OAuth client',
      description:
        'It gets no more tokens, and those that it has end with the next request. It is 404 from then on, ' +
        'except here, where the call can be repeated, and in the list.',
      params: clientParams,
      status: 204,
      answer: 'Ended, everywhere.',
      async handle({ params: { clientId }, operator, changed }) {
        // Includes disabled clients, so that a call that failed halfway can be repeated.
        const { tenant } = changeable(await clients.find(clientId))
        refuseElsewhere(operator, tenant, { call: 'clients:disable', tenantIssuers })
        // First prevent new tokens, then revoke the existing ones. A failure in between can be
        // repeated.
        if (!(await clients.disable(clientId))) throw unknownId()
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
      },
    }),
  ]
}
