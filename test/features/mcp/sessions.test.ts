import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call, codeOf, type McpGateway, messagesIn, request, startMcpGateway } from './gateway.ts'

const SESSION = '1868a90c-of-the-server'
const NOT_FOUND = [404, 'not_found']
const MALFORMED = [400, 'malformed_request']

let gateway: McpGateway
beforeAll(async () => {
  gateway = await startMcpGateway()
})
afterAll(() => gateway?.close())
beforeEach(() => gateway.reset())

const bearer = async (...args: Parameters<McpGateway['token']>) => ({
  Authorization: `Bearer ${await gateway.token(...args)}`,
})

async function beginSession(headers = {}): Promise<string> {
  gateway.respondWith((_, response) =>
    response
      .setHeader('Content-Type', 'application/json')
      .setHeader('Mcp-Session-Id', SESSION)
      .end('{"jsonrpc":"2.0","id":1,"result":{}}'),
  )
  const response = await gateway.send(request('initialize', {}), headers)
  gateway.reset()
  return response.headers.get('Mcp-Session-Id') ?? ''
}

/** Sends events in response to every request. */
const streamEvents = (text: string) =>
  gateway.respondWith((_, response) =>
    response.setHeader('Content-Type', 'text/event-stream').end(text),
  )
const eventOf = (message: unknown, id?: string) =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(message)}\n\n`

describe('sessions', () => {
  test('the client gets a session of its own, and the server gets the one that it began', async () => {
    const session = await beginSession()
    expect(session).not.toBe(SESSION)
    for (const [method, message] of [
      ['POST', call('list_shelves')],
      ['GET', ''],
      ['DELETE', ''],
    ] as const)
      expect((await gateway.send(message, { 'Mcp-Session-Id': session }, method)).status).toBe(200)
    expect(gateway.received.map(({ headers }) => headers['mcp-session-id'])).toEqual(
      Array(3).fill(SESSION),
    )
  })

  test('another isolate and another token of the caller continue the session', async () => {
    const session = await beginSession()
    const headers = { 'Mcp-Session-Id': session, ...(await bearer()) }
    const other = gateway.isolate()
    expect((await gateway.send(call('list_shelves'), headers, 'POST', other)).status).toBe(200)
  })

  test('an error of the server names the session of the client too', async () => {
    const session = await beginSession()
    gateway.respondWith((_, response) =>
      response.writeHead(400, { 'Mcp-Session-Id': SESSION }).end(),
    )
    const response = await gateway.send(call('list_shelves'), { 'Mcp-Session-Id': session })
    expect([response.status, response.headers.get('Mcp-Session-Id')]).toEqual([400, session])
  })

  test('a session costs no round trip', async () => {
    const headers = { 'Mcp-Session-Id': await beginSession() }
    const before = gateway.redis.calls()
    expect((await gateway.send(call('list_shelves'), headers)).status).toBe(200)
    expect(gateway.redis.calls() - before).toBe(1)
  })

  test('another subject, client, tenant or issuer cannot use it, whatever the method [S79]', async () => {
    const session = await beginSession()
    const others = [
      await bearer('bob'),
      await bearer('alice', ['reader'], { client_id: 'other' }),
      await bearer('alice', ['reader'], { tenant: 'other' }),
    ]
    for (const headers of others)
      for (const method of ['POST', 'GET', 'DELETE']) {
        const own = { ...headers, 'Mcp-Session-Id': session }
        expect(await codeOf(await gateway.send(request('ping'), own, method))).toEqual(NOT_FOUND)
      }
    expect(gateway.received).toEqual([])
    expect(gateway.events.at(-1)?.reason).toBe('not_found:mcp_session')
  })

  test.each([
    ['the id of the server', () => SESSION],
    ['another id with this binding', (own: string) => own.replace('1868', '1869')],
    ['another binding', (own: string) => `A${own.slice(1)}`],
    ['no binding', () => 'made-up'],
    ['two', (own: string) => `${own}, ${own}`],
  ])('%s is not a session', async (_, change) => {
    const own = await beginSession()
    const changed = change(own)
    if (changed === own) return
    const headers = { 'Mcp-Session-Id': changed }
    expect(await codeOf(await gateway.send(call('list_shelves'), headers))).toEqual(NOT_FOUND)
    expect(gateway.received).toEqual([])
  })
})

describe('requests of the server, and their answers', () => {
  const sampling = { jsonrpc: '2.0', id: 7, method: 'sampling/createMessage', params: { a: 1 } }

  /** Returns the id with which a client receives a request of the server. */
  async function requestId(headers: Record<string, string>, id: unknown = 7): Promise<unknown> {
    streamEvents(eventOf({ ...sampling, id }))
    const response = await gateway.send(call('list_shelves'), headers)
    const [message] = messagesIn(await response.text())
    expect(message).toEqual({ ...sampling, id: expect.any(String) })
    gateway.respondWith((_, response) => void response.writeHead(202).end())
    gateway.reset()
    return message.id
  }

  test.each([7, 0, 'text', '{"a":1}'])(
    'the answer to the request %j passes with its id',
    async (id) => {
      const headers = { 'Mcp-Session-Id': await beginSession() }
      const bound = await requestId(headers, id)
      for (const answer of [
        { result: { role: 'assistant' } },
        { error: { code: -1, message: 'no' } },
      ])
        expect((await gateway.send({ jsonrpc: '2.0', id: bound, ...answer }, headers)).status).toBe(
          202,
        )
      expect(gateway.received.map(({ body }) => JSON.parse(body))).toEqual([
        { jsonrpc: '2.0', id, result: { role: 'assistant' } },
        { jsonrpc: '2.0', id, error: { code: -1, message: 'no' } },
      ])
    },
  )

  test('answers with made-up ids do not reach the server', async () => {
    const headers = { 'Mcp-Session-Id': await beginSession() }
    const bound = String(await requestId(headers))
    const made = [7, '7', null, '', bound.replace('.7', '.8'), `A${bound}`, bound.slice(0, 44)]
    for (const id of made)
      expect(await codeOf(await gateway.send({ jsonrpc: '2.0', id, result: {} }, headers))).toEqual(
        MALFORMED,
      )
    expect(
      await codeOf(
        await gateway.send({ jsonrpc: '2.0', id: null, error: { code: 1, message: '' } }, headers),
      ),
    ).toEqual(MALFORMED)
    expect(gateway.received).toEqual([])
    expect(gateway.events.at(-1)?.reason).toBe('malformed_request:json_rpc_answer')
  })

  test('an answer belongs to the session and the caller of the request', async () => {
    const headers = { 'Mcp-Session-Id': await beginSession() }
    const answer = { jsonrpc: '2.0', id: await requestId(headers), result: {} }
    const bob = await bearer('bob')
    const ofBob = { ...bob, 'Mcp-Session-Id': await beginSession(bob) }
    for (const other of [{}, bob, ofBob])
      expect(await codeOf(await gateway.send(answer, other))).toEqual(MALFORMED)
    const modern = { ...headers, 'MCP-Protocol-Version': '2026-07-28' }
    expect(await codeOf(await gateway.send(answer, modern))).toEqual(MALFORMED)
    expect(gateway.received).toEqual([])
  })

  test('the cancellation of a request names the id that the client knows', async () => {
    const headers = { 'Mcp-Session-Id': await beginSession() }
    const bound = await requestId(headers)
    streamEvents(
      eventOf({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }),
    )
    const response = await gateway.send(call('list_shelves'), headers)
    expect(messagesIn(await response.text())[0].params).toEqual({ requestId: bound })
  })

  test('requests of a server without sessions are bound to the caller', async () => {
    const bound = await requestId({})
    const answer = { jsonrpc: '2.0', id: bound, result: {} }
    expect((await gateway.send(answer)).status).toBe(202)
    expect(await codeOf(await gateway.send(answer, await bearer('bob')))).toEqual(MALFORMED)
  })
})

describe('resumed streams', () => {
  test('only the caller who received an event can resume after it', async () => {
    const headers = { 'Mcp-Session-Id': await beginSession() }
    streamEvents(eventOf({ jsonrpc: '2.0', method: 'notifications/message' }, 'event-1'))
    const response = await gateway.send(call('list_shelves'), headers)
    const [, id = ''] = (await response.text()).match(/^id: (.+)$/m) ?? []
    expect(id).toMatch(/^[\w-]{43}\.event-1$/)
    gateway.reset()
    const resume = (last: string, others: object = headers) =>
      gateway.send('', { ...others, 'Last-Event-ID': last }, 'GET')
    expect((await resume(id)).status).toBe(200)
    expect(gateway.received[0]?.headers['last-event-id']).toBe('event-1')
    gateway.reset()
    const bob = await bearer('bob')
    const ofBob = { ...bob, 'Mcp-Session-Id': await beginSession(bob) }
    for (const [last, others] of [
      ['event-1', headers],
      [id, bob],
      [id, ofBob],
      [id, {}],
    ] as const)
      expect(await codeOf(await resume(last, others))).toEqual(NOT_FOUND)
    expect(gateway.received).toEqual([])
  })
})
