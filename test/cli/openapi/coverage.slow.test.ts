/** Every node of a document is imported, or a note names it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { type Imported, importDocument } from '../../../cli/openapi/import.ts'
import { DOCUMENTS, documentOf, importFile, importValue, jsonBody, messagesOf } from './import.ts'

const folder = mkdtempSync(join(tmpdir(), 'openapi-coverage-'))
afterAll(() => rmSync(folder, { recursive: true }))

function written(name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

const imported = (text: string): Promise<Imported> =>
  importDocument(written('openapi.yaml', text), {
    prefix: undefined,
    limits: [],
    jsonOnly: false,
    remoteRefs: false,
  })

const codeOf = ({ text }: Imported): string => text.replaceAll(/^\/\/.*\n/gm, '')

describe('merge keys of YAML', () => {
  const YAML = (operation: string) => `
openapi: 3.1.0
info: { title: t, version: '1' }
security: []
x-protected: &protected
  security: [{ oauth: ['orders:write'] }]
  requestBody: { required: true, content: { application/json: { schema: { type: integer } } } }
x-other: &other { security: [{ oauth: ['orders:other'] }], requestBody: { content: {} } }
paths: { /orders: { post: ${operation} } }
`
  test.each([
    ['one mapping', '{ <<: *protected }', 'orders:write', true],
    ['a list, whose first mapping counts', '{ <<: [*protected, *other] }', 'orders:write', true],
    [
      'a member beside it, which counts',
      "{ <<: *protected, security: [{ oauth: ['a:b'] }] }",
      'a:b',
      true,
    ],
    [
      'a member before it, which counts',
      "{ security: [{ oauth: ['a:b'] }], <<: *protected }",
      'a:b',
      true,
    ],
    ['a mapping in place', "{ <<: { security: [{ oauth: ['c:d'] }] } }", 'c:d', false],
  ])('%s', async (_, operation, permission, hasBody) => {
    const { module, notes } = await importFile(written('merge.yaml', YAML(operation)))
    expect(module.routes).toMatchObject([{ method: 'POST', permission }])
    expect(module.routes[0]).not.toHaveProperty('anonymous')
    expect(module.routes[0]?.input?.body !== undefined).toBe(hasBody)
    expect(notes).toEqual([])
  })

  test('a merge key that merges no mapping is refused', async () => {
    await expect(imported(YAML('{ <<: 5 }'))).rejects.toThrow(/cannot merge/)
  })

  test('in JSON, a member of this name is no merge key, and a note names it', async () => {
    const { notes } = await importValue(documentOf('/a', { '<<': { security: [] } }))
    expect(messagesOf(notes, 'unmapped')).toEqual([expect.stringMatching(/\/<<: is not imported/)])
  })
})

describe('a text is refused', () => {
  test.each([
    [
      'with a member twice in JSON',
      '{ "openapi": "3.1.0",\n "paths": {}, "paths": {} }',
      /line 2: .*"paths"/,
    ],
    [
      'with a member twice in another spelling',
      '{ "openapi": "3.1.0", "a": 1, "\\u0061": 2 }',
      /two members/,
    ],
    [
      'with a member twice in YAML',
      'openapi: 3.1.0\npaths: {}\npaths: {}\n',
      /duplicated mapping key/,
    ],
    ['with an alias in its own value', 'openapi: 3.1.0\npaths: &a { /b: *a }\n', /contains itself/],
    ['with two documents', 'openapi: 3.1.0\n---\nopenapi: 3.1.0\n', /single document/],
  ])('%s', async (_, text, message) => {
    await expect(imported(text)).rejects.toThrow(message)
  })

  test('a member twice in another file is a note', async () => {
    written('part.json', '{ "a": { "type": "string" }, "a": {} }')
    const { notes } = await importFile(
      written('root.json', JSON.stringify(documentOf('/a', jsonBody({ $ref: 'part.json#/a' })))),
    )
    expect(messagesOf(notes, 'unmapped').join('\n')).toMatch(/cannot be read: line 1: .*"a"/)
  })
})

describe('a note of the kind unmapped names', () => {
  const body = (schema: unknown, openapi = '3.1.0') =>
    documentOf('/a', jsonBody(schema), { openapi })
  const paths = (value: object) => ({ ...documentOf('/a', {}), paths: value })

  test.each<[string, object, RegExp]>([
    ['a method in capitals', paths({ '/a': { GET: {} } }), /~1a\/GET: .*did you mean "get"/],
    ['an operation without a value', paths({ '/a': { get: null } }), /^GET \/a: .*not an object/],
    ['a path without a slash', paths({ 'a/b': { get: {} } }), /^a\/b: .*slash/],
    ['a path item that is a list', paths({ '/a': [] }), /^\/a: .*cannot be read/],
    ['paths that are a list', paths([]), /^#\/paths: is not imported/],
    [
      'a second operation of one path',
      paths({ '/a?x=1': { get: {} }, '/a?x=2': { get: {} } }),
      /^GET \/a\?x=2: /,
    ],
    [
      'members beside a reference',
      paths({ '/b': { get: {} }, '/a': { $ref: '#/paths/~1b', put: {} } }),
      /\/~1a\/put: /,
    ],
    [
      'an unknown member of an operation',
      documentOf('/a', { securities: [] }),
      /securities: .*did you mean "security"/,
    ],
    ['an unknown keyword', body({ type: 'string', minlength: 1 }), /minlength: .*"minLength"/],
    [
      'a keyword with a value of another type',
      body({ type: 'object', required: 'a' }),
      /\/required: /,
    ],
    ['properties that are a list', body({ type: 'object', properties: [] }), /\/properties: /],
    [
      'required as a flag of a property',
      body({ properties: { a: { type: 'string', required: true } } }),
      /a\/required: /,
    ],
    ['nullable in OpenAPI 3.1', body({ type: 'string', nullable: true }), /\/nullable: /],
    [
      'a keyword of 3.1 in 3.0',
      body({ type: 'object', patternProperties: {} }, '3.0.3'),
      /\/patternProperties: /,
    ],
    ['if in 3.0', body({ if: { type: 'string' }, else: false }, '3.0.3'), /\/if: /],
    [
      'a type that does not exist beside one that does',
      body({ type: ['string', 'money'] }),
      /types .*money/,
    ],
    [
      'an unknown place of a parameter',
      documentOf('/a', { parameters: [{ name: 'q', in: 'Query' }] }),
      /q is in "Query"/,
    ],
    [
      'the whole query of 3.2',
      documentOf('/a', { parameters: [{ name: 'q', in: 'querystring' }] }, { openapi: '3.2.0' }),
      /q is in "querystring"/,
    ],
    [
      'a parameter twice',
      documentOf('/a', {
        parameters: [
          { name: 'q', in: 'query' },
          { name: 'q', in: 'query', required: true },
        ],
      }),
      /parameter query q more than once/,
    ],
    [
      'a required flag that is text',
      documentOf('/a', { parameters: [{ name: 'q', in: 'query', required: 'true' }] }),
      /0\/required: /,
    ],
    [
      'two JSON types',
      documentOf('/a', {
        requestBody: {
          content: { 'application/json': {}, 'application/json; charset=utf-8': { schema: false } },
        },
      }),
      /schema of application\/json; charset/,
    ],
    [
      'the method QUERY of 3.2',
      documentOf('/a', {}, { openapi: '3.2.0', method: 'query' }),
      /^QUERY \/a: /,
    ],
    [
      'other methods of 3.2',
      paths({ '/a': { additionalOperations: { COPY: {} } } }),
      /^COPY \/a: /,
    ],
    [
      'a second server with another path',
      documentOf('/a', {}, { servers: [{ url: '/v1' }, { url: '/v2' }] }),
      /^#\/servers\/1: only the path of the first/,
    ],
    [
      'a variable of the path with several values',
      documentOf(
        '/a',
        {},
        { servers: [{ url: '/{v}', variables: { v: { default: 'a', enum: ['a', 'b'] } } }] },
      ),
      /only the default of the variable \{v\}/,
    ],
    [
      'an extension of ours in another place',
      body({ type: 'string', 'x-portcullis-permission': 'a:b' }),
      /x-portcullis-permission: /,
    ],
    [
      'security that is no list',
      documentOf('/a', { security: 'none' }),
      /^POST \/a: the security requirement/,
    ],
    [
      'the base URL of 3.2',
      documentOf('/a', {}, { openapi: '3.2.0', $self: 'https://example.com/' }),
      /^#\/\$self: /,
    ],
  ])('%s', async (_, document, message) => {
    const { notes } = await importValue(document)
    expect(messagesOf(notes, 'unmapped')).toContainEqual(expect.stringMatching(message))
  })

  test('a path with a star is one path, not all paths below', async () => {
    const { module, notes } = await importValue(paths({ '/g/*': { get: {} } }))
    expect(module.routes.map(({ path }) => path)).toEqual(['/g/:fixed{\\*}'])
    expect(notes).toEqual([])
  })

  test('a path with a query is a route whose requests must have this query', async () => {
    const { module, notes } = await importValue(paths({ '/a?beta=true': { get: {} } }))
    expect(module.routes).toMatchObject([{ path: '/a', permission: 'a:read' }])
    const query = module.routes[0]?.input?.query
    expect(query?._zod.run({ value: { beta: 'true' }, issues: [] }, {})).toMatchObject({
      issues: [],
    })
    expect(query?._zod.run({ value: {}, issues: [] }, {})).not.toMatchObject({ issues: [] })
    expect(notes).toEqual([])
  })
})

describe('members without effect on requests are named once, by their names', () => {
  test('responses, webhooks, callbacks, extensions and unused components', async () => {
    const operation = { callbacks: { a: {} }, 'x-a': 1, description: 'b', responses: { 200: {} } }
    const { ignored, notes } = await importValue(
      documentOf('/a', operation, { webhooks: { b: {} }, 'x-a': 2, schemas: { C: {} } }),
    )
    expect(ignored).toEqual(
      expect.arrayContaining([
        'info',
        'callbacks',
        'x-a',
        'description',
        'responses',
        'webhooks',
        'components',
      ]),
    )
    expect(notes).toEqual([])
  })
})

/** A literal member of this name looks like a promise. */
const THEN = 'then'

/** A document that uses what the importer knows. */
const RICH = {
  openapi: '3.1.0',
  info: { title: 't', version: '1' },
  servers: [
    { url: 'https://{host}/v{n}', variables: { host: { default: 'a' }, n: { default: '2' } } },
  ],
  security: [{ oauth: ['a:read'] }],
  paths: {
    '/a/{id}': {
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }],
      get: {
        parameters: [
          { $ref: '#/components/parameters/Limit' },
          {
            name: 'f',
            in: 'query',
            style: 'deepObject',
            explode: true,
            schema: { type: 'object', properties: { x: { type: 'string' } } },
          },
          {
            name: 'j',
            in: 'query',
            content: { 'application/json': { schema: { type: 'object' } } },
          },
          { name: 'X-H', in: 'header', required: true, schema: { type: 'string', pattern: '^a' } },
        ],
        responses: { 200: { description: 'ok' } },
      },
      put: {
        security: [],
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/A' } } },
        },
      },
    },
  },
  components: {
    securitySchemes: { oauth: { type: 'http', scheme: 'bearer' } },
    parameters: {
      Limit: {
        name: 'limit',
        in: 'query',
        explode: false,
        schema: { type: 'array', items: { type: 'integer', maximum: 9 } },
      },
    },
    schemas: {
      A: {
        allOf: [
          { $ref: '#/components/schemas/B' },
          { type: 'object', required: ['c'], properties: { c: { enum: [1, 'x'] } } },
        ],
        unevaluatedProperties: false,
      },
      B: {
        type: 'object',
        minProperties: 1,
        properties: {
          d: {
            oneOf: [
              { type: 'string', maxLength: 3 },
              { type: 'number', multipleOf: 2 },
            ],
          },
          e: { type: 'array', prefixItems: [{ type: 'string' }], items: false, uniqueItems: true },
          f: { if: { type: 'string' }, [THEN]: { minLength: 2 }, else: { not: { const: 1 } } },
          g: {
            type: 'object',
            patternProperties: { '^x': { type: 'string', format: 'date' } },
            additionalProperties: { type: 'boolean' },
          },
        },
      },
    },
  },
}

type Tokens = readonly (string | number)[]

function objectsIn(value: unknown, tokens: Tokens = []): readonly Tokens[] {
  if (typeof value !== 'object' || value === null) return []
  return [
    ...(Array.isArray(value) ? [] : [tokens]),
    ...Object.entries(value).flatMap(([name, member]) => objectsIn(member, [...tokens, name])),
  ]
}

/** Applies a change to a copy of a document. Returns the place that must be imported or named. */
function mutated(
  original: object,
  tokens: Tokens,
  change: { readonly kind: number; readonly member: number },
): { readonly document: object; readonly place: Tokens } | undefined {
  const document = structuredClone(original)
  let target = document as Record<string, unknown>
  for (const token of tokens) target = target[token] as Record<string, unknown>
  const names = Object.keys(target)
  const name = names[change.member % Math.max(1, names.length)]
  if (change.kind === 0 || name === undefined) {
    target.zzUnknown = { inner: [1, { deep: true }] }
    return { document, place: [...tokens, 'zzUnknown'] }
  }
  const value = target[name]
  if (name === 'openapi') return undefined
  if (change.kind === 1) {
    delete target[name]
    // Media types have no case.
    const other =
      name.includes('/') || name.toUpperCase() === name ? `${name}_` : name.toUpperCase()
    if (Object.hasOwn(target, other)) return undefined
    target[other] = value
    return { document, place: [...tokens, other] }
  }
  const replacements: readonly unknown[] = [null, 17, 'zz', [null], true]
  const replacement = replacements[change.kind % replacements.length]
  if (JSON.stringify(replacement) === JSON.stringify(value)) return undefined
  target[name] = replacement
  return { document, place: [...tokens, name] }
}

function isNamed({ notes }: Imported, place: Tokens): boolean {
  const pointers = place.map(
    (_, index) =>
      `#${place
        .slice(0, index + 1)
        .map((token) => `/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`)
        .join('')}`,
  )
  return notes.some(
    (note) =>
      pointers.includes(note.place) || (note.kind === 'ignored' && place.includes(note.place)),
  )
}

describe('no change of a document is without a trace:', () => {
  const documents: readonly (readonly [string, object])[] = [
    ['a document with every keyword', RICH],
    ...['fastapi.json', 'nestjs.json'].map(
      (name) => [name, JSON.parse(readFileSync(join(DOCUMENTS, name), 'utf8')) as object] as const,
    ),
  ]
  test.each(documents)('%s', async (_, original) => {
    const text = (document: object) => JSON.stringify(document)
    const before = await imported(text(original))
    const notesOf = ({ notes }: Imported) =>
      JSON.stringify(notes.filter(({ kind }) => kind !== 'ignored'))
    const objects = objectsIn(original)
    await fc.assert(
      fc.asyncProperty(
        fc.nat(objects.length - 1),
        fc.record({ kind: fc.nat(8), member: fc.nat(20) }),
        async (index, change) => {
          const made = mutated(original, objects[index] ?? [], change)
          if (made === undefined) return
          let after: Imported
          try {
            after = await imported(text(made.document))
          } catch {
            return // Refused: nothing is imported.
          }
          expect(after.nodes.total).toBe(after.nodes.imported + after.nodes.noted)
          const isTraced =
            codeOf(after) !== codeOf(before) ||
            notesOf(after) !== notesOf(before) ||
            isNamed(after, made.place)
          if (!isTraced) throw new Error(`no trace of ${made.place.join(' > ')}`)
        },
      ),
      { seed: 28, numRuns: 300 },
    )
  })
})
