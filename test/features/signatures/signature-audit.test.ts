import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { signatures } from '../../../src/features/signatures/index.ts'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import { createGateway, type Gateway } from '../../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { definePolicy } from '../../../src/index.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { createKey, ISSUER, mint, type TestKey } from '../../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'

const PUBLIC_URL = 'https://gateway.test'
const ATTACK = "mallory' union select login, password from users -- "

const permission = 'notes:write'
const policy = definePolicy({
  roles: { writer: ['notes:write'] },
  limits: {},
  routes: [
    { method: 'POST', path: '/observed/:name', permission, inspect: { signatures: signatures() } },
    {
      method: 'POST',
      path: '/enforced/:name',
      permission,
      inspect: { signatures: signatures({ mode: 'enforce' }) },
    },
    { method: 'POST', path: '/plain/:name', permission },
  ],
})

let redis: TestRedis
let origin: TestServer
let key: TestKey
let gateway: Gateway
let events: AuditEvent[] = []
/** The bodies that reached the origin. */
let received: string[] = []

beforeAll(async () => {
  key = await createKey('idp')
  redis = await startTestRedis()
  await redis.direct.flushall()
  origin = await startHttpServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    received.push(body)
    response.end('{}')
  })
  const services = composeServices(
    {
      ...redisVars(redis),
      PUBLIC_URL,
      ORIGIN_URL: origin.url,
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: PUBLIC_URL, jwks: { keys: [key.publicJwk] } },
      ]),
    },
    policy,
    WORKERS,
  )
  const auditSink = { record: (event: AuditEvent) => void events.push(event) }
  gateway = createGateway({ ...services, auditSink }, policy)
})

beforeEach(() => {
  received = []
  events = []
})

afterAll(async () => {
  await origin?.close()
  await redis?.close()
})

async function post(path: string, body: string): Promise<Response> {
  const token = await mint(key, { claims: { aud: PUBLIC_URL, roles: ['writer'] } })
  return gateway.fetch(
    new Request(`${PUBLIC_URL}${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body,
    }),
  )
}

test('by default a signature only records: the request is served, and the event names the rule [S63]', async () => {
  const body = JSON.stringify({ note: ATTACK })
  expect((await post('/observed/mine', body)).status).toBe(200)
  expect(received).toEqual([body])
  expect(events).toHaveLength(1)
  expect(events[0]).toMatchObject({
    decision: 'allow',
    reason: 'ok',
    observed: ['signature_matched:sql_injection.break_out'],
  })
  expect(JSON.stringify(events)).not.toContain('password')
})

test('an enforced signature refuses its request, and the event names the rule [S63]', async () => {
  for (const [path, body] of [
    ['/enforced/mine', JSON.stringify({ note: ATTACK })],
    [`/enforced/${encodeURIComponent("mine' or 1=1 --")}`, '{}'],
  ] as const) {
    const response = await post(path, body)
    expect(response.status).toBe(403)
    const text = await response.text()
    expect(JSON.parse(text)).toMatchObject({ code: 'input_refused' })
    expect(text).not.toMatch(/sql|signature|break_out/)
  }
  expect(received).toEqual([])
  expect(events).toHaveLength(2)
  for (const event of events)
    expect(event).toMatchObject({
      decision: 'deny',
      reason: 'signature_matched:sql_injection.break_out',
      status: 403,
    })
  expect(JSON.stringify(events)).not.toContain('password')
})

test('a harmless text is neither refused nor recorded, and a route without signatures is not inspected', async () => {
  expect((await post('/enforced/mine', '{"note":"Seán O\'Brien, or 1 of 2"}')).status).toBe(200)
  expect((await post('/plain/mine', JSON.stringify({ note: ATTACK }))).status).toBe(200)
  expect(received).toHaveLength(2)
  expect(events.map(({ observed }) => observed)).toEqual([undefined, undefined])
})
