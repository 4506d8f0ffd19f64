import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { encodeConsistency } from '../../../src/access/relations/consistency.ts'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { authzen } from '../../../src/features/authzen/index.ts'
import { openfga } from '../../../src/features/openfga/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { relations } from '../../../src/features/relations/index.ts'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import { createGateway } from '../../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import {
  STORES,
  startAuthority,
  type TestAuthority,
  TOKEN,
} from '../../access/relations/decision-points/servers.ts'
import { ISSUER, PUBLIC_URL, startGateway, type TestGateway } from './gateway.ts'
import { MODEL } from './relation-model.ts'

let gateway: TestGateway
let server: TestAuthority
beforeAll(async () => {
  gateway = await startGateway()
  server = await startAuthority({
    none: ['order:1#viewer@user:anne'],
    acme: ['order:2#viewer@user:anne'],
    umbra: [],
  })
})
afterAll(async () => {
  await gateway?.close()
  await server?.close()
})

const EXTERNAL = { openfga: openfga(), authzen: authzen() }
describe.each(['openfga', 'authzen'] as const)('relations decided by %s', (authority) => {
  const events: AuditEvent[] = []

  async function admin(path: string, body?: object) {
    const policy = definePolicy({
      roles: { operator: ['portcullis:*'] },
      limits: {},
      features: [operators()],
      relations: relations({ model: MODEL, issuers: [ISSUER], authority: EXTERNAL[authority] }),
      routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
    })
    const services = composeServices(
      {
        ...gateway.env,
        OPENFGA_URL: server.url,
        OPENFGA_STORES: JSON.stringify({ '': STORES.none, acme: STORES.acme }),
        OPENFGA_TOKEN: TOKEN,
        AUTHZEN_URLS: JSON.stringify({ '': `${server.url}/pdp`, acme: `${server.url}/pdp` }),
        AUTHZEN_TOKEN: TOKEN,
        AUTHORITY_TIMEOUT_MS: '2000',
      },
      policy,
      WORKERS,
    )
    const auditSink = { record: (event: AuditEvent) => void events.push(event) }
    const app = createGateway({ ...services, auditSink }, policy)
    const reply = await app.request(`${PUBLIC_URL}/-/admin${path}`, {
      headers: {
        Authorization: `Bearer ${gateway.operator}`,
        'Content-Type': 'application/json',
        'CF-Connecting-IP': '192.0.2.1',
      },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
    const answer: Record<string, unknown> = await reply.json()
    return { status: reply.status, body: answer }
  }
  const question = { object: 'order:1', relation: 'viewer', subject: 'user:anne' }

  test('are checked there, in the store of each tenant', async () => {
    expect((await admin('/check', question)).body).toEqual({
      allowed: true,
      outcome: 'allowed',
      consistencyToken: encodeConsistency(0, null),
    })
    expect((await admin('/check', { ...question, tenant: 'acme' })).body.outcome).toBe('denied')
    const second = { ...question, object: 'order:2', tenant: 'acme' }
    expect((await admin('/check', second)).body.outcome).toBe('allowed')
  })

  test('cannot be written, listed or expanded here, and the error says so', async () => {
    const before = server.requests.length
    for (const [path, body, where] of [
      ['/relations', { writes: [question] }, { in: 'body', path: '' }],
      ['/relations', undefined, { in: 'query', path: '' }],
      ['/expand', { object: 'order:1', relation: 'viewer' }, { in: 'body', path: '' }],
      ['/check', { ...question, trace: true }, { in: 'body', path: '/trace' }],
    ] as const) {
      const reply = await admin(path, body)
      expect(reply.status).toBe(422)
      expect(reply.body.errors).toMatchObject([where])
    }
    expect(server.requests).toHaveLength(before)
    expect(await gateway.redis.direct.keys('pc:*tuple*')).toEqual([])
    expect(events.filter(({ change }) => change !== undefined)).toEqual([])
  })

  test('are 503 after a malformed answer, and audited as such', async () => {
    server.behavior = (response) => response.writeHead(200).end('{"allowed":"true","decision":1}')
    const reply = await admin('/check', question)
    server.behavior = undefined
    expect(reply.status).toBe(503)
    expect(events.at(-1)).toMatchObject({ decision: 'error', reason: 'authority:malformed' })
  })
})
