import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { ISSUER } from '../../harness/issuer.ts'
import { call, codeOf, type McpGateway, PAGE, request, startMcpGateway } from './gateway.ts'

let gateway: McpGateway
beforeAll(async () => {
  gateway = await startMcpGateway()
})
afterAll(() => gateway?.close())
beforeEach(() => {
  gateway.reset()
  gateway.answerWith(({ id }) => ({ jsonrpc: '2.0', id, result: {} }))
})

const VERSION = '2026-07-28'
const modern = (method: string, params: object = {}) =>
  request(method, { ...params, _meta: { 'io.modelcontextprotocol/protocolVersion': VERSION } })
const modernHeaders = (method: string, name?: string) => ({
  'MCP-Protocol-Version': VERSION,
  'Mcp-Method': method,
  ...(name !== undefined && { 'Mcp-Name': name }),
})
const resourceCall = (uri: string, method = 'resources/read') => request(method, { uri })

test('a number that an argument’s schema or relation reads must be exact [S63]', async () => {
  const exact = await startMcpGateway({
    tools: {
      add: { arguments: z.strictObject({ n: z.number() }) },
      any: { arguments: 'any' },
      read_note: {
        arguments: z.strictObject({ id: z.unknown() }),
        relation: { object: 'note:{arguments.id}', relation: 'reader' },
      },
    },
  })
  try {
    await exact.tuples.write(null, {
      writes: [{ object: 'note:1', relation: 'reader', subject: 'user:alice' }],
      deletes: [],
    })
    const statusOf = async (name: string, values: string) => {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${values}}}`
      return (await exact.send(body)).status
    }
    for (const number of ['9007199254740993', '1.00000000000000000001', '1e400'])
      expect(await statusOf('add', `{"n":${number}}`)).toBe(422)
    expect(await statusOf('read_note', '{"id":1.00000000000000000001}')).toBe(403)
    expect(exact.received).toEqual([])
    expect(await statusOf('add', '{"n":9007199254740992}')).toBe(202)
    expect(await statusOf('read_note', '{"id":1}')).toBe(202)
    expect(await statusOf('any', '{"n":9007199254740993}')).toBe(202)
    expect(exact.received.at(-1)?.body).toContain('9007199254740993')
  } finally {
    await exact.close()
  }
})

test('another spelling of a listed tool or prompt is not covered by `*`, in calls and in lists [S80]', async () => {
  const hidden = [
    'Remove_Book',
    'remove-book',
    'remove.book',
    'removeBook',
    ' remove_book',
    'remove_book\u200b',
    'ｒemove_book',
    'rem\u00f3ve_book',
  ]
  const open = ['remove_books', 'move_book', 'bücher', '本', '+', '-', 'constructor']
  const any = { arguments: 'any' } as const
  const folding = await startMcpGateway({
    tools: { '*': any, remove_book: { ...any, permission: 'books:delete' }, '-': any },
    prompts: { '*': true, remove_book: { permission: 'books:delete' } },
  })
  try {
    for (const name of hidden) {
      expect(await codeOf(await folding.send(call(name)))).toEqual([403, 'insufficient_permission'])
      const prompt = request('prompts/get', { name })
      expect(await codeOf(await folding.send(prompt))).toEqual([403, 'insufficient_permission'])
    }
    expect(folding.received).toEqual([])
    for (const name of open) expect((await folding.send(call(name))).status, name).toBe(202)
    const tools = [...hidden, ...open].map((name) => ({ name }))
    folding.answerWith(({ id }) => ({ jsonrpc: '2.0', id, result: { tools } }))
    const listed = (await (await folding.send(request('tools/list'))).json()) as {
      result: { tools: { name: string }[] }
    }
    expect(listed.result.tools.map(({ name }) => name)).toEqual(open)
  } finally {
    await folding.close()
  }
})

test('arguments and metadata that are null are absent', async () => {
  const nulls = { arguments: null, _meta: null }
  const statusOf = async (name: string) =>
    (await gateway.send(request('tools/call', { name, ...nulls }))).status
  expect(await statusOf('list_shelves')).toBe(200)
  expect(gateway.received).toHaveLength(1)
  // Its schema requires an argument.
  expect(await statusOf('search_books')).toBe(422)
  expect(await statusOf('drop_everything')).toBe(403)
  expect(gateway.received).toHaveLength(1)
})

describe('calls that pass', () => {
  test.each([
    ['initialize', request('initialize', { protocolVersion: '2025-11-25' })],
    ['a notification', { jsonrpc: '2.0', method: 'notifications/initialized' }],
    ['a tool', call('search_books', { text: 'a' })],
    [
      'a task of a tool (2025-11-25)',
      {
        ...request('tools/call', { name: 'list_shelves', task: { ttl: 1_000 } }),
      },
    ],
    ['a resource', resourceCall('file:///public/a.txt')],
    ['a subscription', resourceCall('file:///public/a.txt', 'resources/subscribe')],
    ['a prompt', request('prompts/get', { name: 'summary', arguments: { a: 'b' } })],
    [
      'a completion',
      request('completion/complete', {
        ref: { type: 'ref/prompt', name: 'summary' },
        argument: { name: 'a', value: 'b' },
      }),
    ],
  ])('%s reaches the server byte for byte', async (_, message) => {
    const response = await gateway.send(message)
    expect(response.status).toBe(200)
    expect(gateway.received.map(({ body }) => body)).toEqual([JSON.stringify(message)])
  })

  test('a call of the revision 2026-07-28 passes with its headers', async () => {
    const message = modern('tools/call', {
      name: 'list_shelves',
      inputResponses: {},
      requestState: 's',
    })
    const response = await gateway.send(message, modernHeaders('tools/call', 'list_shelves'))
    expect(response.status).toBe(200)
    expect(gateway.received[0]?.headers['mcp-method']).toBe('tools/call')
  })

  test('a name that is not plain ASCII is compared after decoding', async () => {
    const encoded = `=?base64?${Buffer.from('list_shelves').toString('base64')}?=`
    const message = modern('tools/call', { name: 'list_shelves' })
    const response = await gateway.send(message, modernHeaders('tools/call', encoded))
    expect(response.status).toBe(200)
  })

  test('a page that the policy allows may call', async () => {
    expect((await gateway.send(request('ping'), { Origin: PAGE })).status).toBe(200)
  })

  test('a call costs one round trip to Redis, also with a limit and a relation of its tool', async () => {
    await gateway.tuples.write(null, {
      writes: [{ object: 'note:n1', relation: 'reader', subject: 'user:grace' }],
      deletes: [],
    })
    const headers = { Authorization: `Bearer ${await gateway.token('grace')}` }
    for (const message of [call('search_books', { text: 'a' }), call('read_note', { id: 'n1' })]) {
      // Redis gets the script with the first call.
      await gateway.send(message, headers)
      const before = gateway.redis.calls()
      expect((await gateway.send(message, headers)).status).toBe(200)
      expect(gateway.redis.calls() - before).toBe(1)
    }
  })
})

describe('calls that do not reach the server', () => {
  const named = async (message: unknown, headers?: Record<string, string>) => {
    const code = await codeOf(await gateway.send(message, headers))
    expect(gateway.received).toEqual([])
    return code
  }

  test.each([
    ['a tool that the policy does not list', call('drop_everything')],
    ['a tool in another spelling', call('Search_Books', { text: 'a' })],
    ['a property of Object', call('constructor')],
    ['a tool without its permission', call('remove_book', { isbn: '1' })],
    ['a resource that no pattern covers', resourceCall('file:///etc/passwd')],
    ['a resource without its permission', resourceCall('file:///private/a.txt')],
    ['a subscription to it', resourceCall('file:///private/a.txt', 'resources/subscribe')],
    ['a resource behind dot segments', resourceCall('file:///public/../private/a.txt')],
    ['a resource behind encoded dots', resourceCall('file:///public/%2e%2E/private/a.txt')],
    ['a resource behind an encoded slash', resourceCall('file:///public/..%2fprivate/a.txt')],
    ['a resource behind backslashes', resourceCall('file:///public/..\\private\\a.txt')],
    ['a pattern as a resource', resourceCall('file:///private/*')],
    ['a prompt without its permission', request('prompts/get', { name: 'audit' })],
    [
      'a completion of a hidden prompt',
      request('completion/complete', {
        ref: { type: 'ref/prompt', name: 'audit' },
        argument: { name: 'a', value: 'b' },
      }),
    ],
    [
      'a completion of a hidden resource',
      request('completion/complete', {
        ref: { type: 'ref/resource', uri: 'file:///private/{name}' },
        argument: { name: 'a', value: 'b' },
      }),
    ],
    [
      'a listener for a hidden resource',
      request('subscriptions/listen', {
        notifications: { resourceSubscriptions: ['file:///public/a', 'file:///private/a'] },
      }),
    ],
    ['a note that the caller has no relation to', call('read_note', { id: 'of-bob' })],
    ['a note whose id is no text', call('read_note', { id: 'a b' })],
  ])('%s: 403', async (_, message) => {
    expect(await named(message)).toEqual([403, 'insufficient_permission'])
  })

  test.each([
    ['arguments that do not match', call('search_books', { text: 'x'.repeat(21) })],
    ['unknown arguments', call('search_books', { text: 'a', more: 1 })],
    ['arguments of a tool without any', call('list_shelves', { more: 1 })],
  ])('%s: 422', async (_, message) => {
    const headers = { Authorization: `Bearer ${await gateway.token('frank')}` }
    expect(await named(message, headers)).toEqual([422, 'invalid_input'])
  })

  test.each([
    ['a batch', [call('list_shelves')]],
    ['a batch of two', [call('list_shelves'), call('list_shelves', {}, 2)]],
    [
      'a name twice',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_shelves","name":"remove_book"}}',
    ],
    [
      'a method twice',
      '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"remove_book"}}',
    ],
    [
      'another spelling of the name',
      { ...call('list_shelves'), params: { name: 'list_shelves', Name: 'remove_book' } },
    ],
    [
      'another spelling of the URI',
      request('resources/read', { uri: 'file:///public/a', URI: 'file:///private/a' }),
    ],
    ['a call without a name', request('tools/call', {})],
    ['a call that is also an answer', { ...call('list_shelves'), result: {} }],
    ['a text that is no JSON', '{'],
    ['a number', '1'],
    ['a method that the policy does not list', request('tasks/list')],
  ])('%s: 400', async (_, message) => {
    expect(await named(message)).toEqual([400, 'malformed_request'])
  })

  test.each([
    ['an unknown version', request('ping'), { 'MCP-Protocol-Version': '2024-10-07' }],
    ['a version that is no date', request('ping'), { 'MCP-Protocol-Version': '1' }],
    ['another method than the body', request('tools/list'), { 'Mcp-Method': 'tools/call' }],
    ['another name than the body', call('list_shelves'), { 'Mcp-Name': 'search_books' }],
    ['a name for a method without one', request('ping'), { 'Mcp-Name': 'list_shelves' }],
    ['no method (2026-07-28)', modern('tools/list'), { 'MCP-Protocol-Version': VERSION }],
    [
      'no name (2026-07-28)',
      modern('tools/call', { name: 'list_shelves' }),
      modernHeaders('tools/call'),
    ],
    ['no version in the body (2026-07-28)', request('tools/list', {}), modernHeaders('tools/list')],
    ['another version than the body', modern('ping'), { 'MCP-Protocol-Version': '2025-11-25' }],
    [
      'a name with bad base64',
      modern('tools/call', { name: 'list_shelves' }),
      modernHeaders('tools/call', '=?base64?!?='),
    ],
  ])('headers with %s: 400', async (_, message, headers) => {
    expect(await named(message, headers as Record<string, string>)).toEqual([
      400,
      'malformed_request',
    ])
  })

  test.each(['https://evil.test', 'http://gateway.test', 'null', `${PAGE}.evil.test`])(
    'a page of %s (DNS rebinding), with a valid token: 403',
    async (origin) => {
      for (const method of ['POST', 'GET', 'DELETE']) {
        const response = await gateway.send(request('ping'), { Origin: origin }, method)
        expect(await codeOf(response)).toEqual([403, 'cross_origin_request'])
      }
      expect(gateway.received).toEqual([])
    },
  )

  test('a caller without the permission of the route learns nothing about its message', async () => {
    const guest = { Authorization: `Bearer ${await gateway.token('eve', ['guest'])}` }
    for (const message of ['{', call('unknown'), [1]]) {
      expect(await named(message, guest)).toEqual([403, 'insufficient_permission'])
    }
  })

  test('a limit of a tool counts calls of this tool only', async () => {
    const headers = { Authorization: `Bearer ${await gateway.token('carol')}` }
    const search = () => gateway.send(call('search_books', { text: 'a' }), headers)
    expect([(await search()).status, (await search()).status]).toEqual([200, 200])
    const refused = await search()
    expect(refused.status).toBe(429)
    expect(refused.headers.get('RateLimit')).toContain('"costly"')
    const other = await gateway.send(call('list_shelves'), headers)
    expect(other.status).toBe(200)
    expect(other.headers.get('RateLimit')).not.toContain('costly')
    expect(gateway.received).toHaveLength(3)
  })
})

describe('audit events', () => {
  test('name the method and the tool, never arguments', async () => {
    await gateway.send(call('search_books', { text: 'secret words' }), {
      Authorization: `Bearer ${await gateway.token('dave')}`,
    })
    await gateway.send(call('remove_book', { isbn: 'secret words' }))
    await gateway.send(request('tools/list'))
    expect(gateway.events.map(({ decision, call }) => [decision, call])).toEqual([
      ['allow', { method: 'tools/call', name: 'search_books' }],
      ['deny', { method: 'tools/call', name: 'remove_book' }],
      ['allow', { method: 'tools/list' }],
    ])
    expect(JSON.stringify(gateway.events)).not.toContain('secret')
    expect(gateway.events[0]?.actor.issuer).toBe(ISSUER)
  })
})
