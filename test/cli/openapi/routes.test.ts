import { describe, expect, test } from 'vitest'
import { definePolicy } from '../../../src/policy/policy.ts'
import { type Caller, policyTester } from '../../../src/testing/index.ts'
import { documentOf, importValue, jsonBody, messagesOf } from './import.ts'

const READER: Caller = { sub: 'alice', roles: ['all'] }

/** A tester of a gateway with the imported routes. */
async function gatewayOf(document: object, options = {}) {
  const { module, notes } = await importValue(document, options)
  const limits: Record<string, '100/min'> = { standard: '100/min' }
  const policy = definePolicy({ roles: { all: ['*'] }, limits, routes: module.routes })
  const tester = policyTester(policy)
  return {
    notes,
    routes: module.routes,
    status: async (line: string, request: object = {}) =>
      (await tester.request(line, { as: READER, ...request })).status,
  }
}

const query = (...parameters: readonly object[]) => ({
  parameters: parameters.map((parameter) => ({ in: 'query', ...parameter })),
})

describe('paths', () => {
  test('a parameter, a part of a segment, and a segment with a colon', async () => {
    const id = { name: 'id', in: 'path', required: true, schema: { type: 'integer' } }
    const document = documentOf('/a/{id}', { parameters: [id] }, { method: 'get' })
    const paths = {
      '/a/{id}': { get: { parameters: [id] } },
      '/a/{id}.json': { get: { parameters: [id] } },
      '/a/{id}/b:run': { get: { parameters: [id] } },
    }
    const { status, routes } = await gatewayOf({ ...document, paths })
    expect(routes.map(({ path }) => path).sort()).toEqual([
      '/a/:id',
      '/a/:id/:fixed{b:run}',
      '/a/:id{[^\\x2f]+\\.json}',
    ])
    const lines = ['/a/1', '/a/x', '/a/1.json', '/a/x.json', '/a/1/b:run', '/a/1/b:walk']
    expect(await status('GET /a/1/2.json')).toBe(404)
    const statuses = await Promise.all(lines.map((path) => status(`GET ${path}`)))
    expect(statuses).toEqual([200, 422, 200, 422, 200, 404])
  })

  test('literals come before parameters', async () => {
    const paths = {
      '/a/{id}': { get: {} },
      '/a/mine': { get: {} },
      '/b/{id}/{part}': { get: {} },
      '/b/{order}/lines': { get: {} },
    }
    const { routes } = await gatewayOf({ ...documentOf('/', {}), paths })
    expect(routes.map(({ path }) => path)).toEqual([
      '/a/mine',
      '/a/:id',
      '/b/:order/lines',
      '/b/:id/:part',
    ])
  })

  test('paths and methods that have no route are listed, and other routes remain', async () => {
    const paths = {
      '/a': { get: {}, head: {}, options: {} },
      '/a/{x}-{y}': { get: {} },
      '/b#fragment': { get: {} },
      '/c/{x}': { get: {} },
      '/c/{y}': { get: {} },
    }
    const { routes, notes } = await gatewayOf({ ...documentOf('/', {}), paths })
    expect(routes.map(({ path }) => path)).toEqual(['/a', '/c/:x'])
    const listed = messagesOf(notes, 'unmapped').map((message) => message.split(': ')[0])
    expect(listed).toEqual(['OPTIONS /a', 'GET /a/{x}-{y}', 'GET /b#fragment', 'GET /c/{y}'])
  })

  test('the path of the server is before each path, unless --prefix replaces it', async () => {
    const servers = [{ url: 'https://{host}/v{major}/', variables: { major: { default: '2' } } }]
    const document = documentOf('/a', {}, { servers })
    expect((await gatewayOf(document)).routes[0]?.path).toBe('/v2/a')
    expect((await gatewayOf(document, { prefix: '/x' })).routes[0]?.path).toBe('/x/a')
  })

  test('a server of an operation or a path has its path, and its other host is reported', async () => {
    const on = (...urls: readonly string[]) => ({ servers: urls.map((url) => ({ url })) })
    const document = {
      ...documentOf('/', {}, on('https://api.test/v1', 'https://staging.test/v1')),
      paths: {
        '/a': { get: on('https://Files.test/v2') },
        '/b': { ...on('https://other.test:8443/v1'), get: {} },
        '/c': { ...on('https://other.test/v1'), get: on('https://STAGING.test/v3') },
        '/d': { get: on('/v4') },
        '/e': { get: on('https://api.test/v1', 'https://files.test/v1') },
      },
    }
    const expected = [
      '#/paths/~1a/get/servers: the host files.test',
      '#/paths/~1b/servers: the host other.test:8443',
    ]
    for (const [options, prefixes] of [
      [{}, ['/v1/b', '/v1/e', '/v2/a', '/v3/c', '/v4/d']],
      [{ prefix: '' }, ['/a', '/b', '/c', '/d', '/e']],
    ] as const) {
      const { routes, notes } = await gatewayOf(document, options)
      expect(routes.map(({ path }) => path)).toEqual(prefixes)
      expect(messagesOf(notes, 'unmapped').map((note) => note.split(' is not')[0])).toEqual(
        expected,
      )
    }
  })
})

describe('query, headers and path', () => {
  test.each([
    ['integer', { schema: { type: 'integer' } }, ['a=1'], ['a=1.5', 'a=x', 'b=1']],
    ['boolean', { schema: { type: 'boolean' } }, ['a=true'], ['a=1']],
    ['text that looks like a number', { schema: { type: 'string' } }, ['a=1'], ['a=1&a=2']],
    ['number or null', { schema: { type: ['number', 'null'] } }, ['a=1'], ['a=x']],
    [
      'a list in one parameter',
      { explode: false, schema: { type: 'array', items: { type: 'integer' }, maxItems: 2 } },
      ['a=1,2', 'a='],
      ['a=1,2,3', 'a=1,x'],
    ],
    [
      'a list with another separator',
      {
        style: 'pipeDelimited',
        explode: false,
        schema: { type: 'array', items: { enum: ['x', 'y'] } },
      },
      ['a=x%7Cy'],
      ['a=x,y'],
    ],
    [
      'JSON in one parameter',
      { content: { 'application/json': { schema: { type: 'object', required: ['b'] } } } },
      ['a=%7B%22b%22:1%7D'],
      ['a=%7B%7D', 'a=x'],
    ],
    [
      'an object in several parameters',
      {
        style: 'deepObject',
        explode: true,
        schema: {
          type: 'object',
          additionalProperties: false,
          properties: { b: { type: 'integer' } },
        },
      },
      ['a%5Bb%5D=1', ''],
      ['a%5Bb%5D=x', 'a%5Bc%5D=1'],
    ],
  ])('%s', async (_, parameter, accepted, refused) => {
    const document = documentOf('/q', query({ name: 'a', ...parameter }), { method: 'get' })
    const { status, notes } = await gatewayOf(document)
    expect(notes).toEqual([])
    const statuses = (lines: readonly string[]) =>
      Promise.all(lines.map((line) => status(`GET /q?${line}`)))
    expect(await statuses(accepted)).toEqual(accepted.map(() => 200))
    expect(await statuses(refused)).toEqual(refused.map(() => 422))
  })

  test.each([{}, { explode: false }])(
    'deepObject is one parameter for each member, also with %j',
    async (explode) => {
      const schema = {
        type: 'object',
        additionalProperties: false,
        required: ['b'],
        properties: { b: { type: 'integer' } },
      }
      const deep = { name: 'a', required: true, style: 'deepObject', schema, ...explode }
      const { status, notes } = await gatewayOf(documentOf('/q', query(deep), { method: 'get' }))
      expect(notes).toEqual([])
      expect(await status('GET /q?a%5Bb%5D=1')).toBe(200)
      for (const line of ['', 'a%5Bb%5D=x', 'a%5Bc%5D=1', 'a=b,1'])
        expect(await status(`GET /q?${line}`), line).toBe(422)
    },
  )

  test.each([
    [
      { in: 'header', schema: { type: 'object', properties: { b: { type: 'integer' } } } },
      'object',
    ],
    [{ in: 'path', required: true, style: 'label', schema: { type: 'integer' } }, 'style label'],
  ])(
    'a parameter in a form that is not read has one note, and not that it is no member: %j',
    async (parameter, what) => {
      const parameters = [{ name: 'a', ...parameter }]
      const { notes } = await gatewayOf(documentOf('/q/{a}', { parameters }, { method: 'get' }))
      expect(messagesOf(notes, 'unmapped')).toEqual([expect.stringContaining(what)])
    },
  )

  test('a parameter that may be repeated is checked, and so are the others of its query', async () => {
    const parameters = query(
      { name: 'tag', schema: { type: 'array', items: { type: 'string' }, maxItems: 2 } },
      { name: 'id', schema: { type: 'array', items: { type: 'integer' }, minItems: 1 } },
      {
        name: 'either',
        schema: { oneOf: [{ type: 'integer' }, { type: 'array', items: { type: 'integer' } }] },
      },
      { name: 'limit', schema: { type: 'integer' } },
    )
    const { status, notes } = await gatewayOf(documentOf('/q', parameters, { method: 'get' }))
    expect(messagesOf(notes, 'unmapped')).toEqual([])
    const accepted = [
      '',
      'tag=a',
      'tag=a&tag=b',
      'id=1&id=2',
      'either=1',
      'either=1&either=2',
      'limit=1',
    ]
    const refused = [
      'tag=a&tag=b&tag=c',
      'id=1&id=x',
      'either=x',
      'either=1&either=x',
      'limit=1&limit=2',
      'limit=x&tag=a',
      'more=1',
    ]
    const statuses = (lines: readonly string[]) =>
      Promise.all(lines.map((line) => status(`GET /q?${line}`)))
    expect(await statuses(accepted)).toEqual(accepted.map(() => 200))
    expect(await statuses(refused)).toEqual(refused.map(() => 422))
  })

  test('an object with unknown members is listed, and the rest of the query is checked', async () => {
    const parameters = query(
      { name: 'filter', schema: { type: 'object', additionalProperties: { type: 'string' } } },
      { name: 'limit', schema: { type: 'integer' } },
    )
    const { status, notes } = await gatewayOf(documentOf('/q', parameters, { method: 'get' }))
    expect(await status('GET /q?anything=a&limit=1')).toBe(200)
    expect(await status('GET /q?anything=a&limit=x')).toBe(422)
    expect(messagesOf(notes, 'unmapped')).toEqual([
      expect.stringMatching(/^GET \/q: query parameter filter is an object/),
    ])
  })

  test('a required header is required, in any case of its name', async () => {
    const parameters = [
      { name: 'X-Trace', in: 'header', required: true, schema: { type: 'integer' } },
      { name: 'X-User-Id', in: 'header', schema: { type: 'string' } },
    ]
    const { status, notes } = await gatewayOf(documentOf('/h', { parameters }, { method: 'get' }))
    expect(await status('GET /h')).toBe(422)
    expect(await status('GET /h', { headers: { 'x-trace': '1' } })).toBe(200)
    expect(messagesOf(notes, 'unmapped')).toEqual([expect.stringContaining('X-User-Id')])
  })
})

describe('bodies', () => {
  const SCHEMA = { type: 'object', required: ['a'] }

  test('a required body is checked; without a body in the document, there is none', async () => {
    const paths = { '/b': { post: jsonBody(SCHEMA), put: {} } }
    const { status } = await gatewayOf({ ...documentOf('/', {}), paths })
    expect(await status('POST /b', { body: { a: 1 } })).toBe(200)
    expect(await status('POST /b', { body: {} })).toBe(422)
    expect(await status('POST /b')).toBe(415)
    expect(await status('PUT /b')).toBe(200)
    expect(await status('PUT /b', { body: { a: 1 } })).toBe(413)
  })

  test('an optional body is checked if there is one', async () => {
    const { status } = await gatewayOf(documentOf('/b', jsonBody(SCHEMA, false)))
    expect(await status('POST /b')).toBe(200)
    expect(await status('POST /b', { body: {} })).toBe(422)
    expect(await status('POST /b', { body: { a: 1 } })).toBe(200)
  })

  test('a body of one type that ends in +json is checked', async () => {
    const content = { 'application/merge-patch+json': { schema: SCHEMA } }
    const document = documentOf('/b', { requestBody: { required: true, content } })
    const { notes, status } = await gatewayOf(document)
    const headers = { 'Content-Type': 'application/merge-patch+json' }
    expect(await status('POST /b', { body: '{"a":1}', headers })).toBe(200)
    expect(await status('POST /b', { body: '{}', headers })).toBe(422)
    expect(messagesOf(notes, 'unmapped')).toEqual([])
    const two = { ...content, 'application/json': { schema: {} } }
    const open = await gatewayOf(documentOf('/b', { requestBody: { content: two } }))
    expect(await open.status('POST /b', { body: '{}', headers })).toBe(200)
    expect(messagesOf(open.notes, 'unmapped')).toEqual([expect.stringContaining('merge-patch')])
  })

  test('a body of another type is listed and not checked, unless --json-only requires JSON', async () => {
    const content = { 'application/json': { schema: SCHEMA }, 'text/csv': {} }
    const document = documentOf('/b', { requestBody: { required: true, content } })
    const csv = { body: 'a', headers: { 'Content-Type': 'text/csv' } }
    const open = await gatewayOf(document)
    expect(await open.status('POST /b', csv)).toBe(200)
    expect(messagesOf(open.notes, 'unmapped')).toEqual([expect.stringContaining('text/csv')])
    const strict = await gatewayOf(document, { jsonOnly: true })
    expect(await strict.status('POST /b', csv)).toBe(415)
    expect(messagesOf(strict.notes, 'unmapped')).toEqual([expect.stringContaining('refused')])
  })
})

describe('access', () => {
  const access = async (operation: object, more: object = {}) => {
    const { routes, notes } = await gatewayOf(
      documentOf('/api/v1/orders/{id}', operation, { method: 'get', ...more }),
    )
    const [{ permission, anonymous } = {}] = routes
    const count = (kind: 'assumed' | 'unmapped') => messagesOf(notes, kind).length
    return { permission, anonymous, assumed: count('assumed'), unmapped: count('unmapped') }
  }

  test.each([
    [
      'a scope that is a permission',
      [{ oauth: ['shop:view'] }],
      { permission: 'shop:view', assumed: 0 },
    ],
    ['no scope', [{ oauth: [] }], { permission: 'orders:read', assumed: 0 }],
    ['a scope of another form', [{ oauth: ['orders'] }], { permission: 'orders:read', assumed: 1 }],
    ['two scopes', [{ oauth: ['a:b', 'c:d'] }], { permission: 'a:b', assumed: 0, unmapped: 1 }],
    [
      'two scopes, one of them as derived',
      [{ oauth: ['orders:admin', 'orders:read'] }],
      { permission: 'orders:read', assumed: 0, unmapped: 1 },
    ],
    [
      'a scope of every alternative',
      [{ a: ['a:b'] }, { b: ['a:b'] }],
      { permission: 'a:b', assumed: 0 },
    ],
    ['a requirement that is no object', ['oauth'], { permission: 'orders:read', unmapped: 1 }],
    ['an empty object in place of the list', {}, { permission: 'orders:read', unmapped: 1 }],
    ['a requirement without a list', { a: ['a:b'] }, { permission: 'a:b', unmapped: 0 }],
    ['a list in place of a requirement', [[]], { permission: 'orders:read', unmapped: 1 }],
    ['a scheme without a list', [{ oauth: null }], { permission: 'orders:read', unmapped: 1 }],
    ['false', false, { permission: 'orders:read', unmapped: 1 }],
    ['no value', null, { permission: 'orders:read', unmapped: 1 }],
    ['two alternatives', [{ a: ['a:b'] }, { b: ['c:d'] }], { permission: 'a:b', assumed: 1 }],
    ['an empty list', [], { anonymous: true, assumed: 0 }],
    ['an optional requirement', [{}, { oauth: ['a:b'] }], { anonymous: true, assumed: 0 }],
  ])('%s', async (_, security, expected) => {
    expect(await access({ security })).toMatchObject(expected)
  })

  test('without a requirement, callers need a derived permission', async () => {
    const result = await access({}, { security: undefined })
    expect(result).toMatchObject({ permission: 'orders:read', assumed: 1 })
  })

  test('extensions replace what the document says, those of the operation first', async () => {
    const operation = { 'x-portcullis-permission': 'orders:view', 'x-portcullis-limit': 'standard' }
    const { routes } = await gatewayOf(
      documentOf('/a', { security: [], ...operation }, { 'x-portcullis-origin-timeout-ms': 500 }),
    )
    expect(routes).toMatchObject([
      { permission: 'orders:view', limits: ['standard'], originTimeoutMs: 500 },
    ])
    expect(routes[0]).not.toHaveProperty('anonymous')
  })

  test.each([
    [{ 'x-portcullis-permissions': 'a:b' }, /unknown extension x-portcullis-permissions/],
    [{ 'x-portcullis-permission': 'orders' }, /must be a permission/],
    [{ 'x-portcullis-max-body-bytes': 'large' }, /maxBodyBytes/],
  ])('the extension %j is refused', async (extension, message) => {
    const importing = importValue(documentOf('/a', extension))
    const failure = await importing.catch((error: unknown) => error)
    expect(failure).toMatchObject({
      code: 'invalid_extensions',
      findings: [{ message: expect.stringMatching(message) }],
    })
  })
})

test('paths that differ only in case are exact, and a note says so', async () => {
  const security = [{ oauth: ['b:c'] }]
  const paths = { '/a': { get: {} }, '/A': { get: { security } } }
  const { routes, notes } = await gatewayOf({ ...documentOf('/', {}), paths })
  expect(routes.map(({ originSpelling }) => originSpelling)).toEqual(['exact', 'exact'])
  expect(messagesOf(notes, 'assumed')).toHaveLength(2)
})
