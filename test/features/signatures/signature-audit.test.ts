import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { signatures } from '../../../src/features/signatures/index.ts'
import { definePolicy } from '../../../src/index.ts'
import { startGateway, type TestGateway } from '../../harness/gateway.ts'

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

let gateway: TestGateway
let client: ReturnType<TestGateway['client']>
/** The bodies that reached the origin. */
let received: string[] = []

beforeAll(async () => {
  gateway = await startGateway({
    policy,
    origin: async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      received.push(body)
      response.end('{}')
    },
  })
  client = gateway.client()
})

beforeEach(() => {
  received = []
  client.events.length = 0
})

afterAll(async () => {
  await gateway?.close()
})

async function post(path: string, body: string): Promise<Response> {
  const token = await gateway.token({ claims: { roles: ['writer'] } })
  return client.send(path, '192.0.2.1', token, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body,
  })
}

test('by default a signature only records: the request is served, and the event names the rule [S63]', async () => {
  const body = JSON.stringify({ note: ATTACK })
  expect((await post('/observed/mine', body)).status).toBe(200)
  expect(received).toEqual([body])
  expect(client.events).toHaveLength(1)
  expect(client.events[0]).toMatchObject({
    decision: 'allow',
    reason: 'ok',
    observed: ['signature_matched:sql_injection.break_out'],
  })
  expect(JSON.stringify(client.events)).not.toContain('password')
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
  expect(client.events).toHaveLength(2)
  for (const event of client.events)
    expect(event).toMatchObject({
      decision: 'deny',
      reason: 'signature_matched:sql_injection.break_out',
      status: 403,
    })
  expect(JSON.stringify(client.events)).not.toContain('password')
})

test('a harmless text is neither refused nor recorded, and a route without signatures is not inspected', async () => {
  expect((await post('/enforced/mine', '{"note":"Seán O\'Brien, or 1 of 2"}')).status).toBe(200)
  expect((await post('/plain/mine', JSON.stringify({ note: ATTACK }))).status).toBe(200)
  expect(received).toHaveLength(2)
  expect(client.events.map(({ observed }) => observed)).toEqual([undefined, undefined])
})
