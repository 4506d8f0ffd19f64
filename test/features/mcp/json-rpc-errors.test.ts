import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { call, type JsonRpcError, type McpGateway, request, startMcpGateway } from './gateway.ts'

const REVISION = '2026-07-28'
const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientCapabilities': {},
}

let gateway: McpGateway
beforeAll(async () => {
  gateway = await startMcpGateway()
})
afterAll(() => gateway?.close())
beforeEach(() => {
  gateway.reset()
  gateway.answerWith(({ id }) => ({ jsonrpc: '2.0', id, result: {} }))
})

/** Sends a message that must be refused, and returns the response with its error. */
async function refused(message: unknown, headers: Record<string, string | undefined> = {}) {
  const response = await gateway.send(message, headers)
  expect(gateway.received).toEqual([])
  expect(response.headers.get('Content-Type')).toBe('application/json')
  const body = (await response.json()) as JsonRpcError
  expect(body.jsonrpc).toBe('2.0')
  return { response, body, status: response.status, ...body.error }
}

const modern = (method: string, params: object = {}, id: unknown = 7) =>
  request(method, { ...params, _meta: META }, id)
const headersOf = (method: string, name?: string) => ({
  'MCP-Protocol-Version': REVISION,
  'Mcp-Method': method,
  ...(name !== undefined && { 'Mcp-Name': name }),
})

describe('a refused message is a JSON-RPC error', () => {
  test('a tool without its permission: 403, with the challenge and the id of the request', async () => {
    const { body, status, response, code, message, data } = await refused(
      call('remove_book', { isbn: '1' }, 'a-7'),
    )
    expect([status, body.id, code]).toEqual([403, 'a-7', -32_000])
    expect(message).toBe('This request needs the permission books:delete.')
    expect(data).toEqual({
      code: 'insufficient_permission',
      requestId: response.headers.get('X-Request-Id'),
    })
  })

  test('arguments that do not match: 422, and the message names each finding', async () => {
    const { body, status, code, message, data } = await refused(call('search_books', { text: 1 }))
    expect([status, body.id, code, data.code]).toEqual([422, 1, -32_602, 'invalid_input'])
    expect(message).toContain('/params/arguments/text: ')
    expect(data.errors).toMatchObject([{ in: 'body', path: '/params/arguments/text' }])
  })

  test('an exhausted limit: 429, with the seconds until a repetition', async () => {
    const headers = { Authorization: `Bearer ${await gateway.token('carol')}` }
    for (const _ of [1, 2]) await gateway.send(call('search_books', { text: 'a' }), headers)
    gateway.reset()
    const { body, status, response, code, message, data } = await refused(
      call('search_books', { text: 'a' }, 3),
      headers,
    )
    expect([status, body.id, code]).toEqual([429, 3, -32_000])
    const seconds = Number(response.headers.get('Retry-After'))
    expect(data).toMatchObject({
      code: 'rate_limited',
      limit: 'costly',
      retryAfterSeconds: seconds,
    })
    expect(message).toBe(`The limit "costly" is exhausted. Try again in ${seconds} seconds.`)
    expect(response.headers.get('RateLimit')).toContain('"costly"')
  })

  test('no token: 401 with the challenge. The id is not known: the body was not read', async () => {
    const { body, status, response, data } = await refused(call('list_shelves'), {
      Authorization: undefined,
    })
    expect([status, data.code, 'id' in body]).toEqual([401, 'missing_token', false])
    expect(response.headers.get('WWW-Authenticate')).toContain(
      'resource_metadata="https://gateway.test/.well-known/oauth-protected-resource/mcp"',
    )
  })

  test.each([
    ['text that is no JSON', '{', -32_700],
    ['a name twice', '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32_600],
    ['a batch', [call('list_shelves')], -32_600],
  ])('%s: 400 without an id', async (_, message, expected) => {
    const { body, status, code, data } = await refused(message)
    expect([status, code, data.code]).toEqual([400, expected, 'malformed_request'])
    expect('id' in body).toBe(false)
  })

  test('a page of another origin is refused before its message is read', async () => {
    const { status, data, body } = await refused(request('ping'), { Origin: 'https://evil.test' })
    expect([status, data.code, 'id' in body]).toEqual([403, 'cross_origin_request', false])
  })

  test('requests without a message keep the problem document', async () => {
    const response = await gateway.send('', { Authorization: undefined }, 'GET')
    expect(response.status).toBe(401)
    expect(response.headers.get('Content-Type')).toBe('application/problem+json')
  })
})

describe('codes of the revision 2026-07-28', () => {
  test.each([
    ['a header that differs', modern('tools/list'), headersOf('prompts/list'), -32_020],
    [
      'another version in the body',
      request(
        'tools/list',
        { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': 'v9' } },
        7,
      ),
      headersOf('tools/list'),
      -32_020,
    ],
    ['no metadata', request('server/discover', {}, 7), headersOf('server/discover'), -32_602],
    ['no params', request('server/discover', undefined, 7), headersOf('server/discover'), -32_602],
    ['a call without a name', modern('tools/call'), headersOf('tools/call'), -32_602],
  ])('%s: 400', async (_, message, headers, expected) => {
    const { body, status, code } = await refused(message, headers)
    expect([status, body.id, code]).toEqual([400, 7, expected])
  })

  test.each([
    'initialize',
    'ping',
    'logging/setLevel',
    'resources/subscribe',
    'resources/unsubscribe',
    'unknown/method',
  ])('the method %s: 404', async (method) => {
    const { body, status, code } = await refused(modern(method), headersOf(method))
    expect([status, body.id, code]).toEqual([404, 7, -32_601])
  })

  test('a version that the route does not accept: 400, with those of the server', async () => {
    const versions = { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': 'v9' } }
    const headers = { ...headersOf('server/discover'), 'MCP-Protocol-Version': 'v9' }
    const first = await refused(request('server/discover', versions, 7), headers)
    expect([first.status, first.body.id, first.code]).toEqual([400, 7, -32_022])
    expect(first.data).toMatchObject({ code: 'malformed_request', requested: 'v9' })
    expect(first.data.supported).toContain('2025-11-25')

    gateway.answerWith(({ id }) => ({
      jsonrpc: '2.0',
      id,
      result: { supportedVersions: [REVISION, '2099-01-01'], capabilities: {} },
    }))
    const found = await gateway.send(modern('server/discover'), headersOf('server/discover'))
    const { result } = (await found.json()) as { result: { supportedVersions: string[] } }
    // The gateway would refuse the other one.
    expect(result.supportedVersions).toEqual([REVISION])
    gateway.reset()
    const second = await refused(request('server/discover', versions, 7), headers)
    expect(second.data.supported).toEqual([REVISION])
  })
})

describe('codes of earlier revisions', () => {
  test('an unknown method: 400, because 404 says that the session has ended', async () => {
    const { body, status, code } = await refused(request('tasks/list', {}, 4))
    expect([status, body.id, code]).toEqual([400, 4, -32_601])
  })

  test('a session of another caller: 404', async () => {
    const { status, code, data } = await refused(request('ping'), { 'Mcp-Session-Id': 'a' })
    expect([status, code, data.code]).toEqual([404, -32_000, 'not_found'])
  })

  test('a header that differs: 400', async () => {
    const { status, code } = await refused(request('ping'), { 'Mcp-Method': 'tools/list' })
    expect([status, code]).toEqual([400, -32_600])
  })
})
