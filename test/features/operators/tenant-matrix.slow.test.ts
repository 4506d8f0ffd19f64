/** Every call of the operators' API, by operators of a tenant about their own, another, and no tenant. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newApiKey } from '../../../src/access/tokens/api-key.ts'
import { ISSUER, REMOTE_ISSUER } from './gateway.ts'
import { answerOf, type Party, startTenants, type Tenants, type Things } from './tenant-fixture.ts'

const SUBJECT = 'alice'
const UNKNOWN = '01900000-0000-7000-8000-000000000000'
const OTHERS = ['globex', 'none', 'namesake'] as const
/** The gateway is the issuer of what it creates, so it has one tenant of each name. */
const OTHERS_AT_GATEWAY = ['globex', 'none'] as const
const isOfGateway = (kind: keyof Things) => kind === 'key' || kind === 'client'
const othersOf = (kind: keyof Things) => (isOfGateway(kind) ? OTHERS_AT_GATEWAY : OTHERS)

let tenants: Tenants
beforeAll(async () => {
  tenants = await startTenants()
})
afterAll(() => tenants?.close())

type Row = () => Promise<void>

/**
 * A call that names a thing by its id. The operator of a tenant reaches its own; each other one looks as
 * if it did not exist, and stays as it is.
 */
const byId =
  (
    method: string,
    kind: keyof Things,
    pathOf: (id: string) => string,
    body: object | undefined,
    own: number,
  ): Row =>
  async () => {
    const unknown = answerOf(await tenants.as('acme', method, pathOf(UNKNOWN), body))
    expect(unknown.status).toBe(404)
    for (const party of othersOf(kind)) {
      const id = (await tenants.thingsOf(party, SUBJECT))[kind]
      const before = await tenants.gateway.state()
      const reply = await tenants.as('acme', method, pathOf(id), body)
      expect(answerOf(reply), `${kind} of ${party}`).toEqual(unknown)
      expect(await tenants.gateway.state()).toBe(before)
      expect(tenants.gateway.events.at(-1)?.change).toBeUndefined()
      expect((await tenants.gateway.admin(method, pathOf(id), body)).status).toBeLessThan(300)
    }
    const id = (await tenants.thingsOf('acme', SUBJECT))[kind]
    const reply = await tenants.as('acme', method, pathOf(id), body)
    expect(reply.status, reply.text).toBe(own)
  }

/** A record of the platform that an operator of the tenant may read, or not, and never removes. */
const notLifted =
  (path: string, create: (party: Party) => object, seen: (party: Party) => boolean): Row =>
  async () => {
    for (const party of ['acme', ...OTHERS] as const) {
      const { id } = (await tenants.gateway.admin('POST', path, create(party))).body
      const before = await tenants.gateway.state()
      const reply = await tenants.as('acme', 'DELETE', `${path}/${id}`)
      expect(reply.status, `${path} of ${party}: ${reply.text}`).toBe(seen(party) ? 403 : 404)
      expect(await tenants.gateway.state()).toBe(before)
      expect((await tenants.gateway.admin('DELETE', `${path}/${id}`)).status).toBe(204)
    }
    const { tenant: _, issuer: __, ...own } = create('acme') as Record<string, unknown>
    const created = await tenants.as('acme', 'POST', path, own)
    expect(created.status, created.text).toBe(201)
    expect(created.body).toMatchObject({ tenant: 'acme', owner: 'tenant' })
    for (const party of ['globex', 'namesake'] as const) {
      const removal = await tenants.as(party, 'DELETE', `${path}/${created.body.id}`)
      expect([403, 404]).toContain(removal.status)
    }
    expect((await tenants.as('acme', 'DELETE', `${path}/${created.body.id}`)).status).toBe(204)
  }

/** A list: with more things of others, the pages and their cursors stay the same. */
const listed =
  (path: string, member: string, query = ''): Row =>
  async () => {
    for (let n = 0; n < 3; n += 1) await tenants.thingsOf('acme', SUBJECT)
    const pages = async () => {
      const read = []
      let cursor: string | undefined
      do {
        const page = `${path}?limit=2${query}${cursor === undefined ? '' : `&cursor=${cursor}`}`
        const reply = await tenants.as('acme', 'GET', page)
        expect(reply.status, reply.text).toBe(200)
        read.push(reply.text)
        cursor = reply.body.cursor
        if (cursor !== undefined) expect(reply.body[member]).toHaveLength(2)
      } while (cursor !== undefined)
      return read
    }
    const before = await pages()
    expect(before.join('')).toContain('acme')
    const others = ['clients', 'apiKeys', 'keys'].includes(member) ? OTHERS_AT_GATEWAY : OTHERS
    // Bans of the platform in every tenant are visible.
    for (const party of others.filter((one) => !(member === 'bans' && one === 'none')))
      for (let n = 0; n < 3; n += 1) await tenants.thingsOf(party, SUBJECT)
    expect(await pages()).toEqual(before)
    expect(before.join('')).not.toContain('globex')
    expect((await tenants.as('namesake', 'GET', `${path}?limit=2${query}`)).status).toBe(403)
  }

/** A call that creates something: for the own tenant, named or not, and for no other. */
const created =
  (path: string, body: object, status = 201): Row =>
  async () => {
    for (const [party, tenant] of [
      ['acme', 'globex'],
      ['acme', 'initech'],
      ['namesake', undefined],
      ['namesake', 'acme'],
    ] as const) {
      const named = { ...body, tenant }
      await tenants.gateway.expectRefused('POST', path, named, tenants.operator(party))
    }
    for (const tenant of [undefined, 'acme']) {
      const reply = await tenants.as('acme', 'POST', path, { ...body, tenant })
      expect(reply.status, reply.text).toBe(status)
    }
  }

/** A call about all tenants: for operators of the platform only. */
const platformOnly =
  (method: string, path: string, body?: object): Row =>
  async () => {
    for (const party of ['acme', 'namesake'] as const)
      await tenants.gateway.expectRefused(method, path, body, tenants.operator(party))
    expect((await tenants.gateway.admin(method, path, body)).status).toBeLessThan(300)
  }

/** A call that ends or bounds the access of a subject: of the members of the own tenant alone. */
const effect =
  (path: string, bodyOf: (subject: string) => object, refused: number): Row =>
  async () => {
    const subject = crypto.randomUUID()
    const claims = {
      sub: subject,
      roles: ['reader'],
      jti: subject,
      sid: subject,
      client_id: subject,
    }
    const callers = new Map<Party, string>()
    for (const party of ['acme', ...OTHERS] as const)
      callers.set(party, await tenants.bearer(party, claims))
    const reply = await tenants.as('acme', 'POST', path, bodyOf(subject))
    expect(reply.status, reply.text).toBeLessThan(300)
    const calls = tenants.gateway.originCalls()
    for (const at of [0, 1] as const)
      expect((await tenants.gateway.call(callers.get('acme') ?? '', at)).status).toBe(refused)
    expect(tenants.gateway.originCalls()).toBe(calls)
    for (const party of OTHERS)
      for (const at of [0, 1] as const)
        expect((await tenants.gateway.call(callers.get(party) ?? '', at)).status, party).toBe(200)
  }

const each =
  (...rows: readonly Row[]): Row =>
  async () => {
    for (const row of rows) await row()
  }

const subjectOf = (party: Party) => ({
  kind: 'subject',
  value: SUBJECT,
  ...(party !== 'none' && { tenant: party === 'namesake' ? 'acme' : party }),
  issuer: party === 'namesake' ? REMOTE_ISSUER : ISSUER,
})
const tuple = { object: 'order:7', relation: 'viewer', subject: 'user:anne' }
const limited = (limit: string, value: string) => ({ limit, value })
const isAcme = (party: Party) => party === 'acme'

/** Limits whose windows count callers of several tenants. */
const SHARED_WINDOWS = [limited('byAddress', '203.0.113.7'), limited('byPath', '/orders')]

const sharedWindows =
  (path: string, more: object): Row =>
  async () => {
    for (const window of SHARED_WINDOWS)
      await tenants.gateway.expectRefused(
        'POST',
        path,
        { ...window, ...more },
        tenants.operator('acme'),
      )
    for (const [limit, kind] of [
      ['byKey', 'key'],
      ['byClient', 'client'],
    ] as const) {
      const body = (value: string) => ({ ...limited(limit, value), ...more })
      const unknown = answerOf(await tenants.as('acme', 'POST', path, body(UNKNOWN)))
      for (const party of OTHERS_AT_GATEWAY) {
        const id = (await tenants.thingsOf(party, SUBJECT))[kind]
        const before = await tenants.gateway.state()
        expect(answerOf(await tenants.as('acme', 'POST', path, body(id)))).toEqual(unknown)
        expect(await tenants.gateway.state()).toBe(before)
      }
      const own = (await tenants.thingsOf('acme', SUBJECT))[kind]
      expect((await tenants.as('acme', 'POST', path, body(own))).status).toBeLessThan(300)
    }
  }

const key = (id: string) => `/api-keys/${id}`
const client = (id: string) => `/clients/${id}`

const ROWS: Readonly<Record<string, Row>> = {
  createClient: created('/clients', { name: 'x', grants: ['client_credentials'] }),
  listClients: listed('/clients', 'clients'),
  showClient: byId('GET', 'client', client, undefined, 200),
  rotateClientSecret: byId('POST', 'client', (id) => `${client(id)}/secret`, {}, 200),
  disableClient: byId('DELETE', 'client', client, undefined, 204),

  createApiKey: created('/api-keys', { name: 'x', subject: 'x' }),
  listApiKeys: listed('/api-keys', 'apiKeys'),
  lookUpApiKey: async () => {
    const lookUp = (apiKey: string, party: Party = 'acme') =>
      tenants.as(party, 'POST', '/api-key-lookups', { apiKey })
    const unknown = answerOf(await lookUp(newApiKey()))
    expect(unknown.status).toBe(404)
    for (const tenant of ['acme', 'globex', undefined]) {
      const body = { name: 'x', subject: SUBJECT, tenant }
      const { id, apiKey } = (await tenants.gateway.admin('POST', '/api-keys', body)).body
      const reply = await lookUp(apiKey)
      if (tenant === 'acme') expect(reply.body.id).toBe(id)
      else expect(answerOf(reply)).toEqual(unknown)
      expect((await lookUp(apiKey, 'none')).body.id).toBe(id)
    }
    expect((await lookUp(newApiKey(), 'namesake')).status).toBe(403)
  },
  getApiKey: byId('GET', 'key', key, undefined, 200),
  updateApiKey: byId('PATCH', 'key', key, { name: 'y' }, 200),
  readApiKeyUsage: byId('GET', 'key', (id) => `${key(id)}/usage`, undefined, 200),
  readUsage: listed('/usage', 'keys', '&until=2026-11-26T00:00:00Z'),
  rotateApiKey: byId('POST', 'key', (id) => `${key(id)}/secret`, {}, 200),
  disableApiKey: byId('DELETE', 'key', key, undefined, 204),

  createRevocation: each(
    created('/revocations', { kind: 'subject', value: 'x' }),
    ...(['token', 'session', 'client', 'subject'] as const).map((kind) =>
      effect('/revocations', (value) => ({ kind, value }), 401),
    ),
  ),
  listRevocations: listed('/revocations', 'revocations'),
  deleteRevocation: notLifted('/revocations', subjectOf, isAcme),

  createBan: each(
    created('/bans', { kind: 'subject', value: 'x', seconds: 60 }),
    effect('/bans', (value) => ({ kind: 'subject', value, seconds: 60 }), 403),
    platformOnly('POST', '/bans', { kind: 'address', value: '198.51.100.9', seconds: 600 }),
  ),
  listBans: listed('/bans', 'bans'),
  deleteBan: notLifted(
    '/bans',
    (party) => ({ ...subjectOf(party), seconds: 60 }),
    (party) => party === 'acme' || party === 'none',
  ),

  listLimits: listed('/limits', 'overrides'),
  createLimitOverride: each(
    created('/limits/overrides', { ...limited('few', 'x'), requests: 3 }),
    sharedWindows('/limits/overrides', { requests: 3 }),
  ),
  deleteLimitOverride: notLifted(
    '/limits/overrides',
    (party) => {
      const { kind: _, ...named } = subjectOf(party)
      return { limit: 'few', requests: 3, ...named }
    },
    isAcme,
  ),
  resetLimit: each(
    created('/limits/reset', limited('few', 'x'), 204),
    sharedWindows('/limits/reset', {}),
  ),

  listPlans: async () => {
    const assign = (value: string) =>
      tenants.gateway.admin('POST', '/plans/assignments', { by: 'tenant', value, plan: 'pro' })
    await assign('acme')
    const before = (await tenants.as('acme', 'GET', '/plans')).text
    for (const by of ['subject', 'client'] as const)
      await tenants.gateway.admin('POST', '/plans/assignments', { by, value: 'acme', plan: 'pro' })
    await assign('globex')
    expect((await tenants.as('acme', 'GET', '/plans')).text).toBe(before)
    expect(JSON.parse(before).assignments).toHaveLength(1)
    expect((await tenants.as('namesake', 'GET', '/plans')).status).toBe(403)
  },
  assignPlan: platformOnly('POST', '/plans/assignments', {
    by: 'tenant',
    value: 'acme',
    plan: 'pro',
  }),
  removePlanAssignment: async () => {
    const body = { by: 'tenant', value: 'acme', plan: 'pro' }
    const { id } = (await tenants.gateway.admin('POST', '/plans/assignments', body)).body
    for (const one of [id, UNKNOWN]) await platformRefused('DELETE', `/plans/assignments/${one}`)
  },

  listConsents: async () => {
    for (const party of ['acme', ...OTHERS] as const) await tenants.thingsOf(party, SUBJECT)
    const path = `/consents?subject=${SUBJECT}`
    const clientsOf = async (party: Party, query = '') =>
      (await tenants.as(party, 'GET', path + query)).body.consents.map(
        (consent: { client: string }) => consent.client,
      )
    expect(await clientsOf('acme')).toEqual(['app-of-acme'])
    expect(await clientsOf('globex')).toEqual(['app-of-globex'])
    expect(await clientsOf('none')).toEqual(['app-of-none'])
    expect(await clientsOf('none', '&tenant=globex')).toEqual(['app-of-globex'])
    await platformRefused('GET', `${path}&tenant=globex`)
    expect((await tenants.as('namesake', 'GET', path)).status).toBe(403)
  },
  withdrawConsent: async () => {
    for (const party of ['acme', ...OTHERS] as const) await tenants.thingsOf(party, SUBJECT)
    const path = '/consents/withdrawals'
    const body = (party: string) => ({ client: `app-of-${party}`, subject: SUBJECT })
    const unknown = answerOf(await tenants.as('acme', 'POST', path, body('nobody')))
    for (const party of ['globex', 'none'] as const)
      expect(answerOf(await tenants.as('acme', 'POST', path, body(party)))).toEqual(unknown)
    await tenants.gateway.expectRefused(
      'POST',
      path,
      { ...body('globex'), tenant: 'globex' },
      tenants.operator('acme'),
    )
    expect((await tenants.as('acme', 'POST', path, body('acme'))).status).toBe(204)
    const left = await tenants.as('globex', 'GET', `/consents?subject=${SUBJECT}`)
    expect(left.body.consents).toHaveLength(1)
  },

  writeRelations: created('/relations', { writes: [tuple] }, 200),
  listRelations: async () => {
    await tenants.as('acme', 'POST', '/relations', { writes: [tuple] })
    const before = (await tenants.as('acme', 'GET', '/relations')).text
    const other = { ...tuple, subject: 'user:bob' }
    for (const party of ['globex', 'none'] as const)
      await tenants.as(party, 'POST', '/relations', { writes: [other] })
    expect((await tenants.as('acme', 'GET', '/relations')).text).toBe(before)
    await platformRefused('GET', '/relations?tenant=globex')
  },
  checkRelation: created('/check', tuple, 200),
  expandRelation: created('/expand', { object: tuple.object, relation: tuple.relation }, 200),

  queryAudit: listed('/audit', 'events'),
  readAuditChain: platformOnly('GET', '/audit/chain'),
  listKeys: async () => {
    // The public part of the keys, which the key set publishes to everybody.
    expect((await tenants.as('acme', 'GET', '/keys')).text).not.toContain('"d"')
  },
  createErasure: created('/audit/erasures', { subject: 'x', issuer: ISSUER }),
  getErasure: async () => {
    const pathOf = (id: string) => `/audit/erasures/${id}`
    const unknown = answerOf(await tenants.as('acme', 'GET', pathOf(UNKNOWN)))
    expect(unknown.status).toBe(404)
    // An order of the platform about the tenant is the platform's.
    for (const party of ['acme', ...OTHERS] as const) {
      const { erasure } = await tenants.thingsOf(party, SUBJECT)
      expect(answerOf(await tenants.as('acme', 'GET', pathOf(erasure)))).toEqual(unknown)
    }
    const own = await tenants.as('acme', 'POST', '/audit/erasures', {
      subject: 'x',
      issuer: ISSUER,
    })
    expect((await tenants.as('acme', 'GET', pathOf(own.body.id))).body.tenant).toBe('acme')
    expect(answerOf(await tenants.as('globex', 'GET', pathOf(own.body.id)))).toEqual(unknown)
  },

  mintToken: created('/tokens', { subject: 'x' }),
  explainRequest: async () => {
    const request = { method: 'GET', path: '/orders' }
    const explain = (body: object) => tenants.as('acme', 'POST', '/explanations', body)
    const caller = { subject: 'carol', issuer: ISSUER, roles: ['reader'] }
    const claims = { sub: 'carol', roles: ['reader'] }
    expect((await explain({ ...request, caller })).body.decision).toBe('allow')
    const own = await tenants.bearer('acme', claims)
    expect((await explain({ ...request, token: own })).body.decision).toBe('allow')
    for (const body of [
      { caller: { ...caller, tenant: 'globex' } },
      { caller: { ...caller, issuer: REMOTE_ISSUER } },
      { caller, address: '203.0.113.7' },
      { token: `${own}x` },
      {},
    ])
      await platformRefused('POST', '/explanations', { ...request, ...body })
    for (const party of OTHERS)
      await platformRefused('POST', '/explanations', {
        ...request,
        token: await tenants.bearer(party, claims),
      })
  },
}

async function platformRefused(method: string, path: string, body?: object) {
  await tenants.gateway.expectRefused(method, path, body, tenants.operator('acme'))
}

test('the matrix has a row for every call of the operators API [S88]', () => {
  expect(Object.keys(ROWS).sort()).toEqual(tenants.calls.map(({ id }) => id).sort())
})

describe('an operator of a tenant reads, changes and infers nothing of another tenant [S88]', () => {
  test.each(Object.entries(ROWS))('%s', (_, row) => row())
})

test('metrics count the requests of all tenants, so an operator of a tenant gets none [S88]', async () => {
  const read = (party: Party) =>
    tenants.gateway.send('/-/metrics', {
      headers: { Authorization: `Bearer ${tenants.operator(party)}` },
    })
  expect((await read('acme')).status).toBe(403)
  expect((await read('none')).status).toBe(200)
})
