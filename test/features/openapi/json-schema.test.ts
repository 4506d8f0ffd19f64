import { describe, expect, test } from 'vitest'
import * as classic from 'zod'
import * as z from 'zod/mini'
import { jsonSchemaOf } from '../../../src/features/openapi/json-schema.ts'
import { describe as about } from '../../../src/validators/checks.ts'

const SIDES = ['input', 'output'] as const

/** What zod writes, without the name of the draft. */
function ofZod(schema: z.core.$ZodType, io: (typeof SIDES)[number]): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}

const upper = z.transform((text: string) => text.toUpperCase())
const person = { name: z.string(), age: z.optional(z.int()) }

const SCHEMAS: Readonly<Record<string, z.core.$ZodType>> = {
  text: z.string(),
  'text with lengths': z.string().check(z.minLength(1), z.maxLength(9), z.minLength(2)),
  'text of one length': z.string().check(z.length(3)),
  'a pattern': z.string().check(z.regex(/^a+$/)),
  'two patterns': z.string().check(z.regex(/^a/), z.regex(/b$/), z.startsWith('a')),
  'a number': z.number(),
  'a whole number': z.int(),
  'numbers of 32 bits': z.tuple([z.int32(), z.uint32()]),
  'bounds of numbers': z.int().check(z.minimum(1), z.maximum(9), z.minimum(2), z.maximum(8)),
  'exclusive bounds': z.number().check(z.gt(0), z.lt(10)),
  'bounds of both kinds': z.tuple([
    z.number().check(z.gte(1), z.gt(1), z.lte(9), z.lt(10)),
    z.int().check(z.positive(), z.gte(3)),
  ]),
  'a multiple': z.number().check(z.multipleOf(5)),
  'a boolean, null, nothing, anything': z.tuple([z.boolean(), z.null(), z.never(), z.unknown()]),
  'a list': z.array(z.string()).check(z.minLength(1), z.maxLength(5)),
  'a tuple': z.tuple([z.string(), z.optional(z.number())]),
  'a tuple with more': z.tuple([z.string()], z.number()),
  'an object': z.object(person),
  'a closed object': z.strictObject(person),
  'an open object': z.looseObject(person),
  'an object with other members': z.catchall(z.object(person), z.number()),
  'an object of optional members': z.partial(z.object(person)),
  'an object without members': z.object({}),
  'a record': z.record(z.string().check(z.regex(/^[a-z]+$/)), z.number()),
  'a record of all names': z.record(z.enum(['a', 'b']), z.string()),
  'a record of some names': z.partialRecord(z.enum(['a', 'b']), z.string()),
  'a record of optional values': z.record(z.enum(['a', 'b']), z.optional(z.string())),
  'a record with a pattern': z.looseRecord(z.string().check(z.regex(/^x-/)), z.string()),
  alternatives: z.union([z.string(), z.array(z.string())]),
  'alternatives without rules': z.union([z.string(), z.nullable(z.boolean()), z.string()]),
  'tagged alternatives': z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('a') }),
    z.object({ kind: z.literal('b'), size: z.number() }),
  ]),
  'an enumeration': z.enum(['one', 'two']),
  'an enumeration of numbers': z.enum({ one: 1, two: 2 }),
  'an enumeration of one': z.enum(['one']),
  'a literal': z.literal('one'),
  'literals of one type': z.literal([1, 2]),
  'literals of two types': z.literal(['one', 2]),
  'a literal null': z.literal(null),
  'a literal bigint': z.literal(1n),
  nullable: z.nullable(z.string()),
  'nullable with a rule': z.nullable(z.string().check(z.minLength(1))),
  nullish: z.nullish(z.string()),
  'a template': z.templateLiteral(['v', z.number()]),
  'a default': z.object({ a: z._default(z.string(), 'b') }),
  'a default of a transformation': z.object({ a: z._default(z.pipe(z.string(), upper), 'B') }),
  'a default before a transformation': z.prefault(z.pipe(z.string(), upper), 'b'),
  'a transformation before a schema': z.object({
    a: z.pipe(
      z.transform((value) => value),
      z.optional(z.string()),
    ),
  }),
  'a codec': z.codec(z.iso.datetime(), z.date(), {
    decode: (text) => new Date(text),
    encode: (date) => date.toISOString(),
  }),
  'a fallback': z.object({ a: z.catch(z.string(), 'b') }),
  'a required member': z.object({ a: z.nonoptional(z.optional(z.string())) }),
  readonly: z.readonly(z.array(z.string())),
  lazy: z.lazy(() => z.string()),
  'values without JSON': z.object({
    at: z.date(),
    big: z.bigint(),
    map: z.map(z.string(), z.string()),
    own: z.custom<string>(),
  }),
  'a description': z.string().check(about('a name')),
  'descriptions of parts': z.object({
    a: z.optional(z.string().check(about('inside'))).check(about('outside')),
    b: z.optional(z.string().check(about('inside'))),
    c: z.string().check(about('first'), z.minLength(1)),
  }),
  'zod with methods': classic.object({
    email: classic.email().min(3).describe('an address'),
    count: classic.number().int().positive().max(9).optional(),
    list: classic.array(classic.string().nullable()).nonempty(),
    trimmed: classic.string().trim().transform(Number),
    coerced: classic.coerce.number().default(3),
  }),
  ...Object.fromEntries(
    Object.entries({
      uuid: z.uuid(),
      uuidv7: z.uuidv7(),
      guid: z.guid(),
      email: z.email(),
      url: z.url(),
      ipv4: z.ipv4(),
      ipv6: z.ipv6(),
      cidr: z.cidrv4(),
      emoji: z.emoji(),
      ulid: z.ulid(),
      e164: z.e164(),
      hostname: z.hostname(),
      'date and time': z.iso.datetime({ offset: true }),
      'local time': z.iso.datetime({ local: true }),
      'time without seconds': z.iso.datetime({ precision: -1 }),
      date: z.iso.date(),
      time: z.iso.time(),
      duration: z.iso.duration(),
    }).map(([name, schema]) => [`format: ${name}`, schema]),
  ),
}

describe.each(SIDES)('describes the %s as zod does', (side) => {
  test.each(Object.entries(SCHEMAS))('%s', (_, schema) => {
    expect(jsonSchemaOf(schema, side)).toEqual(ofZod(schema, side))
  })
})

test('accepts anything where a schema contains itself', () => {
  const tree = z.object({
    name: z.string(),
    get trees() {
      return z.array(tree)
    },
  })
  const deep: z.core.$ZodType = z.lazy(() => z.union([z.string(), z.array(deep)]))
  expect(jsonSchemaOf(tree, 'input')).toMatchObject({
    properties: { name: { type: 'string' }, trees: { type: 'array', items: {} } },
  })
  expect(jsonSchemaOf(deep, 'input')).toEqual({
    anyOf: [{ type: 'string' }, { type: 'array', items: {} }],
  })
})

test('describes both parts of an intersection, which allow members of each other', () => {
  const both = z.intersection(z.strictObject({ a: z.string() }), z.object({ b: z.number() }))
  expect(jsonSchemaOf(both, 'output')).toEqual({
    allOf: [
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      { type: 'object', properties: { b: { type: 'number' } }, required: ['b'] },
    ],
  })
})
