/** Two tenants and the platform on one gateway, with one of everything that an operator names. */
import { createCheckpointSealer } from '../../../src/audit/chain.ts'
import { insertAuditEvents } from '../../../src/audit/sql/audit-chain.ts'
import { MIGRATIONS } from '../../../src/audit/sql/migrations.generated.ts'
import { withSchema } from '../../../src/audit/sql/schema.ts'
import { authorizationCode } from '../../../src/features/authorization-code/index.ts'
import { createConsents } from '../../../src/features/authorization-code/redis/consents.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { plans } from '../../../src/features/plans/index.ts'
import { relations } from '../../../src/features/relations/index.ts'
import { createPages } from '../../../src/features/sign-in/rendering/page.ts'
import { SIGNED_IN } from '../../../src/features/sign-in/signed-in.ts'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import type { Feature } from '../../../src/gateway/feature.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { consumerDatabase } from '../../../src/runtimes/node/audit/database.ts'
import { openDatabase } from '../../../src/runtimes/node/audit/open-database.ts'
import { anEvent } from '../../audit/event.ts'
import { ISSUER, REMOTE_ISSUER, type Reply, startGateway } from './gateway.ts'
import { MODEL } from './relation-model.ts'

/** Who owns a thing, or who calls. `namesake` is the tenant of the same name at another issuer. */
export const PARTIES = ['acme', 'globex', 'none', 'namesake'] as const
export type Party = (typeof PARTIES)[number]

const signIn: Feature = {
  name: 'signIn',
  create(parts) {
    SIGNED_IN.offer(parts, {
      renderPage: createPages({}),
      users: { find: async () => ({ signInPath: '/' }) },
    })
    return {}
  },
}

const policy = definePolicy({
  features: [operators(), authorizationServer(), signIn, authorizationCode({})],
  relations: relations({ model: MODEL, issuers: [ISSUER] }),
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  abuse: { exempt: ['192.0.2.1'] },
  limits: {
    few: { limit: 2, windowSeconds: 3_600, by: 'subject', onUnavailable: 'deny' },
    byClient: { limit: 9, windowSeconds: 60, by: 'client', onUnavailable: 'deny' },
    byKey: { limit: 9, windowSeconds: 60, by: 'key', onUnavailable: 'deny' },
    byTenant: { limit: 9, windowSeconds: 60, by: 'tenant', onUnavailable: 'deny' },
    byAddress: { limit: 9, windowSeconds: 60, by: 'address', onUnavailable: 'deny' },
    byPath: {
      limit: 9,
      windowSeconds: 60,
      by: ({ request }) => request.url,
      onUnavailable: 'deny',
    },
    plan: plans({ plans: { free: '100/min', pro: '1000/min' }, default: 'free' }),
  },
  routes: [
    { method: 'GET', path: '/orders', permission: 'orders:read' },
    { method: 'GET', path: '/few', permission: 'orders:read', limits: ['few'] },
  ],
})

/** The tenant that a party is in, and the issuer that vouches for it. */
const tenantOf = (party: Party) =>
  party === 'none' ? undefined : party === 'namesake' ? 'acme' : party
const issuerOf = (party: Party) => (party === 'namesake' ? REMOTE_ISSUER : ISSUER)

/** Ids of the things of one party. */
export interface Things {
  readonly key: string
  readonly client: string
  readonly ban: string
  readonly revocation: string
  readonly override: string
  readonly erasure: string
}

export async function startTenants() {
  const database = await openDatabase('sqlite::memory:')
  const db = consumerDatabase(database)
  const seal = createCheckpointSealer([])
  const record = (events: Parameters<typeof insertAuditEvents>[1]) =>
    withSchema(db, MIGRATIONS, () => insertAuditEvents(db, events, { seal, nowMs: Date.now() }))
  await record([])
  const gateway = await startGateway({ auditDb: db, policy })
  const { url, token } = gateway.redis
  const redis = createRedisRest({ url, token, timeoutMs: 20_000 })
  const consents = createConsents(redis, Date.now)

  const bearer = (party: Party, claims: Record<string, unknown>) =>
    gateway.token({ tenant: tenantOf(party), ...claims }, issuerOf(party))
  const operators = new Map<Party, string>()
  for (const party of PARTIES)
    operators.set(party, await bearer(party, { sub: 'olga', roles: ['operator'] }))
  const operator = (party: Party) => operators.get(party) ?? ''

  async function made(path: string, body: object): Promise<string> {
    const reply = await gateway.admin('POST', path, body)
    if (reply.status !== 201) throw new Error(`${path}: ${reply.status} ${reply.text}`)
    return reply.body.id ?? reply.body.clientId
  }

  /** Creates one of everything for a party, by an operator without a tenant. */
  async function thingsOf(party: Party, subject: string): Promise<Things> {
    const tenant = tenantOf(party)
    const issuer = issuerOf(party)
    await consents.allow({ issuer, subject, tenant }, consentOf(party), {
      session: { id: crypto.randomUUID(), expiresAtSeconds: Date.now() / 1000 + 600 },
      ended: [],
      isRepeated: false,
    })
    const key = await made('/api-keys', { name: party, subject, tenant })
    const actor = { ...anEvent().actor, issuer, subject, tenant: tenant ?? null, key }
    await record([anEvent({ actor, time: new Date().toISOString() })])
    const named = { value: subject, issuer, tenant }
    return {
      key,
      client: await made('/clients', { name: party, grants: ['client_credentials'], tenant }),
      ban: await made('/bans', { kind: 'subject', ...named, seconds: 600 }),
      revocation: await made('/revocations', { kind: 'subject', ...named }),
      override: await made('/limits/overrides', { limit: 'few', ...named, requests: 5 }),
      erasure: await made('/audit/erasures', { subject: `${subject}-gone`, issuer, tenant }),
    }
  }

  const consentOf = (party: Party) => ({
    client: `app-of-${party}`,
    name: 'App',
    redirectUri: 'https://app.example.com/callback',
    scopes: [],
    audiences: ['https://gateway.test'],
    allowedAtSeconds: Math.floor(Date.now() / 1000),
  })

  return {
    gateway,
    db,
    record,
    operator,
    bearer,
    thingsOf,
    /** All calls of the gateway, as its own description of the API has them. */
    calls: (composeServices(gateway.env, policy, WORKERS).calls ?? [])
      .filter(({ operation }) => operation.path.startsWith('/-/admin/'))
      .map(({ operation }) => operation),
    as: (party: Party, method: string, path: string, body?: object) =>
      gateway.admin(method, path, body, { as: operator(party) }),
    async close() {
      await gateway.close()
      database.close()
    },
  }
}

export type Tenants = Awaited<ReturnType<typeof startTenants>>

/** Returns what a caller can compare of a response: everything but ids and times of the request. */
export const answerOf = ({ status, headers, text }: Reply) => ({
  status,
  text: text.replaceAll(/"(?:requestId|instance)":"[^"]*"/g, ''),
  headers: [...headers].filter(([name]) => !/^(?:x-request-id|ratelimit|server-timing)/.test(name)),
})
