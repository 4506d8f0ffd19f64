/** Calls that make OAuth clients, and end them. */
import * as z from 'zod'
import { type Client, GRANT_TYPES, newClientSchema } from '../../oauth/client.ts'
import { pageSize } from '../../operators/page.ts'
import type { PolicyLimit } from '../../policy.ts'
import { type AdminCall, adminGroup, inputRefused, timeOf, unknownId } from './call.ts'
import { ownGrantOf, refuseBeyond } from './grant.ts'
import { cursor, time } from './schemas.ts'
import type { AdminOptions } from './stores.ts'
import { refuseElsewhere, tenantOf } from './tenant.ts'

/** A day. */
const MAX_GRACE_SECONDS = 86_400
/** A token request that found its client a moment before it was ended is over by then. */
const IN_FLIGHT_SECONDS = 60

const clientParams = z.strictObject({ clientId: z.uuid().toLowerCase() })
const clientSecret = z.string().describe('shown this once')
const clientView = () =>
  z.strictObject({
    clientId: z.uuid(),
    name: z.string(),
    grants: z.array(z.enum(GRANT_TYPES)),
    scopes: z.array(z.string()).nullable().describe('null: no bound of its own'),
    roles: z.array(z.string()),
    audiences: z.array(z.string()),
    tenant: z.string().nullable(),
    authentication: z.enum(['client_secret', 'private_key_jwt']),
    tokenFormat: z.enum(['jwt', 'opaque']),
    tokenAlgorithm: z.string().nullable().describe('null: that of the first active key'),
    accessTokenSeconds: z.int().nullable().describe("null: the policy's"),
    dpopBound: z.boolean(),
    disabled: z.boolean(),
    configured: z.boolean().describe('in CLIENTS, where alone it can be changed'),
    createdAt: time.nullable().describe('null: from CLIENTS, which does not say'),
  })

/** Everything but the hashes. */
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
    authentication: client.jwks === undefined ? 'client_secret' : 'private_key_jwt',
    tokenFormat,
    tokenAlgorithm: client.tokenAlgorithm ?? null,
    accessTokenSeconds: client.accessTokenSeconds ?? null,
    dpopBound,
    disabled,
    configured,
    createdAt: configured ? null : timeOf(client.createdAtSeconds),
  }
}

/** `/-/admin/clients`. */
export function clientCalls(options: AdminOptions, limits: readonly PolicyLimit[]): AdminCall[] {
  const { clients, cutOffs, publicUrl, cutOffSeconds, signingKeys, now } = options
  const issuers = options.relations?.issuers
  const call = adminGroup('Clients', limits)

  async function existing(id: string): Promise<Client> {
    const client = await clients.find(id)
    if (client === undefined) throw unknownId()
    return client
  }

  async function changeable(id: string): Promise<Client> {
    const client = await existing(id)
    if (client.configured) throw inputRefused('params', '/clientId', 'is configured in CLIENTS')
    return client
  }

  /** A client that nothing can sign for would get nothing but failures. */
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
        const tenant = tenantOf(operator, body.tenant, { call: 'clients:create', issuers })
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
      query: z.strictObject({ limit: pageSize, cursor: z.string().min(1).max(64).optional() }),
      status: 200,
      answer: 'Clients, newest first and those of the configuration last; never a secret.',
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
        const client = await changeable(clientId)
        refuseElsewhere(operator, client.tenant, { call: 'clients:rotate', issuers })
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
      description: 'It gets no more tokens, and those that it has end with the next request.',
      params: clientParams,
      status: 204,
      answer: 'Ended, everywhere.',
      async handle({ params: { clientId }, operator, changed }) {
        const { tenant } = await changeable(clientId)
        refuseElsewhere(operator, tenant, { call: 'clients:disable', issuers })
        // First no more tokens, then the end of all there are: what fails in between can be repeated.
        if (!(await clients.disable(clientId))) throw unknownId()
        // From here on it gets none, whatever happens to the rest.
        changed('client.disable', clientId)
        // As a subject, too: others may have exchanged a token of its own for one of theirs.
        for (const kind of ['client', 'subject'] as const)
          await cutOffs.cutOff({
            kind,
            issuer: publicUrl,
            value: clientId,
            atSeconds: Math.floor(now() / 1000) + IN_FLIGHT_SECONDS,
            ttlSeconds: cutOffSeconds + IN_FLIGHT_SECONDS,
          })
      },
    }),
  ]
}
