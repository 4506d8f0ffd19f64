import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import * as z from 'zod/mini'
import { documentOf, importValue, jsonBody, messagesOf } from './import.ts'

interface Case {
  readonly name: string
  readonly schema: unknown
  readonly schemas?: object
  readonly values: readonly unknown[]
}

const NODE = { type: 'object', required: ['id'], properties: { id: { type: 'integer' } } }

/** Values on both sides of each rule. ajv decides which are valid. */
const CASES: readonly Case[] = [
  {
    name: 'lengths in code points',
    schema: { type: 'string', minLength: 2, maxLength: 3 },
    values: ['a', '😀', '😀😀', '😀😀😀', '😀😀😀😀', 'abcd'],
  },
  {
    name: 'patterns',
    schema: { type: 'string', pattern: '^\\p{L}+/[0-9]$' },
    values: ['é/1', 'a1', 'ab/12'],
  },
  {
    name: 'integers of any size',
    schema: { type: 'integer' },
    values: [1, 1.0, 1.5, 2 ** 60, -3, '1', null],
  },
  {
    name: 'int32',
    schema: { type: 'integer', format: 'int32' },
    values: [2147483647, 2147483648, -2147483649],
  },
  {
    name: 'int32 with a minimum below its range',
    schema: { type: 'integer', format: 'int32', minimum: -1e10 },
    values: [-2147483648, -2147483649],
  },
  {
    name: 'numbers that are whole by their format',
    schema: { type: 'number', format: 'int64' },
    values: [1, 1.5, 2 ** 60, '1'],
  },
  {
    name: 'bounds',
    schema: { type: 'number', minimum: 1, exclusiveMaximum: 2 },
    values: [0.9, 1, 1.99, 2],
  },
  { name: 'steps', schema: { type: 'number', multipleOf: 0.01 }, values: [0.07, 19.99, 0.005] },
  {
    name: 'formats',
    schema: { type: 'string', format: 'date-time' },
    values: [
      '2024-02-29T12:00:00Z',
      '2024-02-30T12:00:00Z',
      '2024-02-29t12:00:00.5+02:00',
      '2024-02-29T12:00:00',
      '2024-02-29',
    ],
  },
  {
    // The last second of a day in UTC is the only one that can have the number 60.
    name: 'leap seconds',
    schema: { type: 'string', format: 'time' },
    values: [
      ...['23:59:60Z', '23:59:60.5z', '22:59:60-01:00', '00:29:60+00:30', '15:59:60-08:00'],
      ...['23:58:60Z', '22:59:60Z', '23:59:60+01:00', '23:59:60-00:30', '23:59:61Z'],
    ],
  },
  {
    name: 'dates',
    schema: { type: 'string', format: 'date' },
    values: ['2024-02-29', '2023-02-29', '2024-2-9'],
  },
  {
    name: 'UUIDs of any version',
    schema: { type: 'string', format: 'uuid' },
    values: ['123e4567-e89b-02d3-0456-426614174000', '123E4567E89B12D3A456426614174000'],
  },
  {
    name: 'keywords without a type',
    schema: { minLength: 3, minimum: 5, required: ['a'] },
    values: ['ab', 'abc', 4, 5, {}, { a: 1 }, [], null, true],
  },
  {
    name: 'properties without a type',
    schema: { properties: { a: { type: 'number' } } },
    values: [{ a: 1 }, { a: 'x' }, 'text', 1],
  },
  {
    name: 'objects are open',
    schema: NODE,
    values: [{ id: 1 }, { id: 1, more: true }, {}, { id: 'x' }, []],
  },
  {
    name: 'closed objects',
    schema: { ...NODE, additionalProperties: false },
    values: [{ id: 1 }, { id: 1, more: true }],
  },
  {
    name: 'other members',
    schema: { ...NODE, additionalProperties: { type: 'string' } },
    values: [
      { id: 1, a: 'x' },
      { id: 1, a: 2 },
    ],
  },
  {
    name: 'members by pattern',
    schema: {
      type: 'object',
      properties: { a: {} },
      patternProperties: { '^x-': { type: 'integer' } },
      additionalProperties: false,
    },
    values: [{ a: 1, 'x-b': 2 }, { 'x-b': 'c' }, { b: 1 }],
  },
  {
    name: 'names of members',
    schema: { type: 'object', propertyNames: { maxLength: 2 } },
    values: [{ ab: 1 }, { abc: 1 }],
  },
  {
    name: 'counts of members',
    schema: { type: 'object', minProperties: 1, maxProperties: 2 },
    values: [{}, { a: 1 }, { a: 1, b: 2, c: 3 }],
  },
  {
    name: 'required without property',
    schema: { type: 'object', required: ['a'] },
    values: [{}, { a: null }],
  },
  {
    name: 'required properties of any type',
    schema: { type: 'object', required: ['a'], properties: { a: {} } },
    values: [{}, { a: null }],
  },
  {
    name: 'dependent members',
    schema: { type: 'object', dependentRequired: { a: ['b'] } },
    values: [{ a: 1 }, { a: 1, b: 2 }, { b: 2 }],
  },
  {
    name: 'names that objects inherit',
    schema: {
      type: 'object',
      required: ['valueOf'],
      properties: { constructor: { type: 'string' }, valueOf: { type: 'number' } },
    },
    values: [{}, { valueOf: 1 }, { valueOf: 1, constructor: 2 }, { valueOf: 1, constructor: 'x' }],
  },
  {
    name: 'unique items',
    schema: { type: 'array', uniqueItems: true },
    values: [
      [1, 2],
      [1, 1],
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      [1, '1'],
    ],
  },
  {
    name: 'tuples',
    schema: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false },
    values: [[], ['a'], ['a', 1], ['a', 1, 2], [1]],
  },
  {
    name: 'tuples with more items',
    schema: { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'number' } },
    values: [
      ['a', 1],
      ['a', 'b'],
    ],
  },
  {
    name: 'enumerations',
    schema: { enum: ['a', 1, null, true, { a: [1] }] },
    values: ['a', 1, null, true, { a: [1] }, { a: [2] }, 'b', false],
  },
  {
    name: 'enumerations with a type',
    schema: { type: 'string', enum: ['a', 1] },
    values: ['a', 1],
  },
  { name: 'constants', schema: { const: { a: 1 } }, values: [{ a: 1 }, { a: 2 }] },
  {
    name: 'lists of types',
    schema: { type: ['string', 'null'], minLength: 2 },
    values: ['a', 'ab', null, 1],
  },
  {
    name: 'allOf of closed objects',
    schema: {
      allOf: [NODE, { type: 'object', properties: { id: {}, b: {} }, additionalProperties: false }],
    },
    values: [{ id: 1 }, { id: 1, c: 1 }, {}],
  },
  {
    name: 'anyOf',
    schema: { anyOf: [{ type: 'string' }, { minimum: 3 }] },
    values: ['a', 2, 3, null],
  },
  {
    name: 'oneOf',
    schema: {
      oneOf: [
        { multipleOf: 2, type: 'integer' },
        { multipleOf: 3, type: 'integer' },
      ],
    },
    values: [2, 3, 6, 5],
  },
  { name: 'not', schema: { not: { type: 'string', minLength: 2 } }, values: ['a', 'ab', 1] },
  {
    name: 'conditions',
    schema: {
      type: 'object',
      if: { properties: { a: { const: 1 } }, required: ['a'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { required: ['b'] },
      else: { required: ['c'] },
    },
    values: [{ a: 1 }, { a: 1, b: 1 }, { a: 2 }, { c: 1 }],
  },
  {
    name: 'references with other keywords',
    schema: { $ref: '#/components/schemas/Node', required: ['more'] },
    schemas: { Node: NODE },
    values: [{ id: 1 }, { id: 1, more: 1 }],
  },
  {
    name: 'circular schemas',
    schema: { $ref: '#/components/schemas/A' },
    schemas: {
      A: { type: 'object', properties: { b: { $ref: '#/components/schemas/B' } } },
      B: { type: 'array', items: { $ref: '#/components/schemas/A' }, maxItems: 1 },
    },
    values: [{ b: [{ b: [] }] }, { b: [{ b: [{}, {}] }] }, { b: {} }],
  },
  {
    name: 'unevaluatedProperties',
    schema: {
      allOf: [{ $ref: '#/components/schemas/Base' }, { properties: { b: {} } }],
      properties: { c: {} },
      patternProperties: { '^x-': {} },
      unevaluatedProperties: false,
    },
    schemas: { Base: { type: 'object', properties: { a: {} } } },
    values: [{ a: 1, b: 1, c: 1, 'x-d': 1 }, { a: 1, d: 1 }, { d: 1 }, {}],
  },
  {
    name: 'unevaluatedProperties with a schema',
    schema: {
      allOf: [{ properties: { a: {} } }],
      unevaluatedProperties: { type: 'integer' },
    },
    values: [{ a: 'x' }, { a: 'x', b: 1 }, { b: 'x' }, 1],
  },
  {
    name: 'unevaluatedProperties beside a part that accepts every member',
    schema: {
      type: 'object',
      allOf: [{ additionalProperties: { type: 'integer' } }],
      unevaluatedProperties: false,
    },
    values: [{ a: 1 }, { a: 'x' }],
  },
  {
    name: 'boolean schemas',
    schema: { type: 'object', properties: { a: false, b: true } },
    values: [{ a: 1 }, { b: 1 }],
  },
]

describe('a generated schema accepts what ajv accepts, and no more:', () => {
  test.each(CASES)('$name', async ({ schema, schemas = {}, values }) => {
    const document = documentOf('/a', jsonBody(schema), { schemas })
    const { module, notes } = await importValue(document)
    expect(notes).toEqual([])
    const ajv = new Ajv2020({ strict: false, multipleOfPrecision: 9, ownProperties: true })
    formats.default(ajv)
    ajv.addSchema({ ...document, $id: 'document' })
    const validate = ajv.compile({
      $ref: 'document#/paths/~1a/post/requestBody/content/application~1json/schema',
    })
    const body = module.routes[0]?.input?.body
    const decisions = values.map((value) => [value, body && z.safeParse(body, value).success])
    expect(decisions).toEqual(values.map((value) => [value, validate(value)]))
    expect(new Set(decisions.map(([, decision]) => decision)).size).toBe(2)
  })
})

describe('schemas of OpenAPI 3.0', () => {
  const bodyOf = async (schema: unknown, schemas = {}) => {
    const document = documentOf('/a', jsonBody(schema), { openapi: '3.0.3', schemas })
    const { module, notes } = await importValue(document)
    const body = module.routes[0]?.input?.body
    return { notes, accepts: (value: unknown) => body && z.safeParse(body, value).success }
  }

  test('nullable and boolean exclusive bounds', async () => {
    const schema = { type: 'number', nullable: true, minimum: 1, exclusiveMinimum: true }
    const { accepts, notes } = await bodyOf(schema)
    expect([null, 1, 1.1].map(accepts)).toEqual([true, false, true])
    expect(notes).toEqual([])
  })

  test('nullable and an enumeration with null', async () => {
    const { accepts, notes } = await bodyOf({ type: 'string', nullable: true, enum: ['x', null] })
    expect(['x', null, 'y'].map(accepts)).toEqual([true, true, false])
    expect(notes).toEqual([])
    const without = await bodyOf({ type: 'string', nullable: true, enum: ['x'] })
    expect(messagesOf(without.notes, 'approximated')).toEqual([
      expect.stringMatching(/^POST \/a body: null is accepted, although another keyword/),
    ])
  })

  test('members next to a reference do not count, and notes say so', async () => {
    const { accepts, notes } = await bodyOf(
      { $ref: '#/components/schemas/Text', maxLength: 1 },
      { Text: { type: 'string' } },
    )
    expect(['ab', 1].map(accepts)).toEqual([true, false])
    expect(messagesOf(notes, 'unmapped')).toEqual([expect.stringMatching(/\/maxLength: /)])
  })

  test('nullable next to allOf accepts null, and a note says so', async () => {
    const { accepts, notes } = await bodyOf(
      { nullable: true, allOf: [{ $ref: '#/components/schemas/Text' }] },
      { Text: { type: 'string' } },
    )
    expect(['ab', 1, null].map(accepts)).toEqual([true, false, true])
    expect(messagesOf(notes, 'approximated')).toEqual([
      expect.stringMatching(/^POST \/a body: null is accepted/),
    ])
  })
})

describe('a pattern that could block the process [S84]', () => {
  const bodyOf = async (schema: object) => {
    const { module, notes } = await importValue(documentOf('/a', jsonBody(schema)))
    const body = module.routes[0]?.input?.body
    if (body === undefined) throw new Error('no body')
    return { notes, parse: (value: unknown) => z.safeParse(body, value) }
  }

  test.each([
    ['nested repetition', { type: 'string', pattern: '^(a+)+$' }],
    ['alternatives that overlap', { type: 'string', pattern: '^(a|a)*$', maxLength: 40 }],
    ['a repetition without an anchor', { type: 'string', pattern: '[a-z]+$' }],
    ['a text that is too long for it', { type: 'string', pattern: '[a-z]+$', maxLength: 5000 }],
    ['names of members', { type: 'object', patternProperties: { '^(x*)*y$': { type: 'null' } } }],
    ['names of all members', { type: 'object', propertyNames: { pattern: '(a*)*b' } }],
  ])('is not used, and a note says so: %s', async (_, schema) => {
    const { notes, parse } = await bodyOf(schema)
    expect(messagesOf(notes, 'unmapped')).toEqual([
      expect.stringMatching(/pattern .* is not checked/),
    ])
    const hostile = `${'a'.repeat(30)}!`
    const value = schema.type === 'object' ? { [hostile]: 1 } : hostile
    expect(parse(value).success).toBe(true)
  })

  test('not, if and oneOf of such a pattern accept what the document accepts', async () => {
    const slow = { type: 'string', pattern: '^(a+)+$' }
    for (const schema of [
      { not: slow },
      { if: slow, else: false },
      { oneOf: [slow, { type: 'string' }] },
    ])
      expect((await bodyOf(schema)).parse('b').success).toBe(true)
  })

  test.each([
    ['lines', { pattern: '^[a-z]+(,[a-z]+)*$' }, 'a,b', 'a,'],
    ['a short text', { pattern: '[a-z]+$', maxLength: 100 }, '1a', '1'],
    ['a large count', { pattern: '^[\\s\\S]{1,4096}$' }, 'a', ''],
  ])('other patterns are used: %s', async (_, schema, accepted, refused) => {
    const { notes, parse } = await bodyOf({ type: 'string', ...schema })
    expect(notes).toEqual([])
    expect([accepted, refused].map((value) => parse(value).success)).toEqual([true, false])
  })

  test('a pattern is not run on text that is longer than maxLength', async () => {
    const { parse } = await bodyOf({
      type: 'string',
      pattern: '[a-z]+$',
      maxLength: 100,
      format: 'email',
    })
    const issues = parse('a'.repeat(1_000_000)).error?.issues.map(({ message }) => message)
    expect(issues).toEqual(['Must have at most 100 characters'])
  })
})

describe('what is approximated accepts what the document accepts, and a note says so:', () => {
  const TAGGED = { type: 'object', properties: { kind: { type: 'string' } } }

  test.each([
    ['a format that is not known', { type: 'string', format: 'color' }, 'red', /format color/],
    ['a format of numbers for text', { type: 'string', format: 'int64' }, 'x', /format int64/],
    ['a format of other numbers', { type: 'integer', format: 'uint8' }, 256, /format uint8/],
    ['a pattern that needs no flag u', { type: 'string', pattern: '^\\-a$' }, '-a', /without it/],
    ['a pattern of another language', { type: 'string', pattern: '(?i)a' }, 'A', /not checked/],
    ['a type that does not exist', { type: 'money' }, 1, /"money"/],
    ['a bound that is no number', { type: 'number', minimum: '1' }, 0, /minimum/],
    ['contains', { type: 'array', contains: { type: 'null' } }, [null], /contains/],
    ['unevaluatedItems', { type: 'array', unevaluatedItems: false }, [], /unevaluated/],
    [
      'unevaluatedProperties of a schema that cannot be read',
      { $ref: '#/nothing', unevaluatedProperties: false },
      {},
      /unevaluated/,
    ],
    ['an anchor', { $ref: '#text', $defs: { a: { $anchor: 'text' } } }, 1, /#text cannot/],
    ['a reference without the first slash', { $ref: '#components/schemas/A' }, 1, /cannot be/],
    ['a reference to the whole document', { $ref: '#' }, 1, /# cannot be resolved/],
    ['not of an approximated schema', { not: { type: 'string', pattern: '(?i)a' } }, 'B', /not is/],
    [
      'oneOf with a discriminator',
      { oneOf: [TAGGED, { ...TAGGED, minProperties: 1 }], discriminator: { propertyName: 'kind' } },
      { kind: 'a' },
      /discriminator/,
    ],
    [
      'a discriminator of subtypes',
      { ...TAGGED, discriminator: { propertyName: 'kind' } },
      {},
      /subtypes/,
    ],
  ])('%s', async (_, schema, value, message) => {
    const { module, notes } = await importValue(documentOf('/a', jsonBody(schema)))
    const body = module.routes[0]?.input?.body
    expect(body && z.safeParse(body, value).success).toBe(true)
    expect(
      [...messagesOf(notes, 'unmapped'), ...messagesOf(notes, 'approximated')].join('\n'),
    ).toMatch(message)
  })
})

test('a request need not contain a property that only responses have', async () => {
  const schema = {
    type: 'object',
    required: ['id', 'name'],
    properties: { id: { type: 'string', readOnly: true }, name: { type: 'string' } },
  }
  const { module } = await importValue(documentOf('/a', jsonBody(schema)))
  const body = module.routes[0]?.input?.body
  const accepts = (value: unknown) => body && z.safeParse(body, value).success
  expect([{ name: 'a' }, { id: 'x' }].map(accepts)).toEqual([true, false])
})

test('a oneOf whose alternatives have different constants is exact', async () => {
  const kind = (name: string) => ({
    type: 'object',
    required: ['kind'],
    properties: { kind: { const: name } },
  })
  const { notes, text } = await importValue(
    documentOf(
      '/a',
      jsonBody({ oneOf: [kind('a'), kind('b')], discriminator: { propertyName: 'kind' } }),
    ),
  )
  expect(notes).toEqual([])
  expect(text).toContain('z.union([')
})
