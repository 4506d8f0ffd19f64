import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import policy from '../../examples/mcp/policy.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'

let gateway: TestGateway
let client: ReturnType<TestGateway['client']>
/** The method and body of requests that reached the origin. */
let received: string[] = []

beforeAll(async () => {
  gateway = await startGateway({
    policy,
    signs: true,
    origin: async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      received.push(`${request.method} ${body}`)
      response.setHeader('Content-Type', 'application/json')
      response.end('{"jsonrpc":"2.0","id":1,"result":{}}')
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

async function send(
  role: string,
  body?: string,
  method = 'POST',
  scope?: string,
): Promise<Response> {
  const token = await gateway.token({ claims: { roles: [role], scope } })
  return client.send('/mcp', '192.0.2.1', token, {
    method,
    ...(body !== undefined && { headers: { 'Content-Type': 'application/json' }, body }),
  })
}

const message = (method: string, params?: unknown) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
const tool = (name: string, values?: unknown) => message('tools/call', { name, arguments: values })

const SEARCH = tool('search_books', { text: 'moby dick', limit: 5 })
const REMOVE = tool('remove_book', { isbn: '9780000000000' })

describe('the example policy for an MCP server, in a whole gateway', () => {
  test.each([
    ['initialize', 'reader', message('initialize', { protocolVersion: '2025-06-18' })],
    ['a notification', 'reader', '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
    ['the list of tools', 'reader', message('tools/list', {})],
    ['a public tool', 'reader', tool('list_shelves')],
    ['a tool that the caller may use', 'reader', SEARCH],
    ['a dangerous tool for a permitted caller', 'librarian', REMOVE],
    ['unusual white space', 'reader', ` ${SEARCH.replaceAll(',', ' ,\n')} `],
  ])('forwards %s byte for byte', async (_, role, body) => {
    expect((await send(role, body)).status).toBe(200)
    expect(received).toEqual([`POST ${body}`])
  })

  test.each([
    ['a dangerous tool', REMOVE, 403, 'insufficient_permission', 'permission_missing:books:delete'],
    [
      'a tool that is not in the policy',
      tool('run_shell', { line: 'ls' }),
      403,
      'insufficient_permission',
      'call_refused:tool',
    ],
    [
      'a tool in another case',
      tool('Search_Books', { text: 'a' }),
      403,
      'insufficient_permission',
      'call_refused:tool',
    ],
    [
      'a resource that is not in the policy',
      message('resources/read', { uri: 'file:///etc/passwd' }),
      403,
      'insufficient_permission',
      'call_refused:resource',
    ],
    [
      'arguments that do not match',
      tool('search_books', { text: 'a', limit: 1e6 }),
      422,
      'invalid_input',
      'invalid_input:body/params/arguments/limit',
    ],
    [
      'arguments for a tool without arguments',
      tool('list_shelves', { all: true }),
      422,
      'invalid_input',
      'invalid_input:body/params/arguments',
    ],
    [
      'an answer to a request that the server did not make',
      '{"jsonrpc":"2.0","id":99,"result":{}}',
      400,
      'malformed_request',
      'malformed_request:json_rpc_answer',
    ],
    [
      'a batch',
      `[${SEARCH},${SEARCH.replace('"id":1', '"id":2')}]`,
      400,
      'malformed_request',
      'malformed_request:json_rpc_batch',
    ],
    [
      'two names',
      SEARCH.replace('"name"', '"name":"remove_book","name"'),
      400,
      'malformed_request',
      'malformed_request:body_duplicate_name',
    ],
    [
      'a call disguised as a response',
      REMOVE.replace('"id"', '"result":{},"id"'),
      400,
      'malformed_request',
      'malformed_request:json_rpc_ambiguous',
    ],
  ])(
    'refuses a reader %s, and the origin receives nothing',
    async (_, body, status, code, reason) => {
      const response = await send('reader', body)
      expect(response.status).toBe(status)
      expect(response.headers.get('Content-Type')).toBe('application/json')
      expect(await response.json()).toMatchObject({ jsonrpc: '2.0', error: { data: { code } } })
      expect(received).toEqual([])
      expect(client.events.map((event) => [event.decision, event.reason, event.status])).toEqual([
        ['deny', reason, status],
      ])
    },
  )

  test('names the missing permission if one exists', async () => {
    const missing = await send('librarian', REMOVE, 'POST', 'mcp:use')
    expect(missing.headers.get('WWW-Authenticate')).toContain('scope="mcp:use books:delete"')
    const powerless = await send('reader', REMOVE)
    expect([powerless.status, powerless.headers.get('WWW-Authenticate')]).toEqual([403, null])
    const unknown = await send('librarian', tool('run_shell'))
    expect([unknown.status, unknown.headers.get('WWW-Authenticate')]).toEqual([403, null])
  })

  test('does not inspect the event stream and the end of a session', async () => {
    expect((await send('reader', undefined, 'GET')).status).toBe(200)
    expect((await send('reader', undefined, 'DELETE')).status).toBe(200)
    expect(received).toEqual(['GET ', 'DELETE '])
  })

  test('describes no call to a caller who may not use the route', async () => {
    for (const body of ['{', REMOVE]) {
      const response = await send('guest', body)
      expect([response.status, response.headers.get('WWW-Authenticate')]).toEqual([403, null])
      expect(await response.text()).not.toContain('books')
    }
    expect(received).toEqual([])
  })
})
