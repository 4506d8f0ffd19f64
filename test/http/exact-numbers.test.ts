/** A schema compares the number that the origin receives, or refuses it. */
import fc from 'fast-check'
import { Hono } from 'hono'
import { afterEach, describe, expect, test, vi } from 'vitest'
import * as z from 'zod'
import { jsonText, listText, numberText } from '../../src/features/openapi-routes/text.ts'
import { findInexact, isExact } from '../../src/http/exact-numbers.ts'
import type { BodyVariables } from '../../src/middleware/context.ts'
import { problemHandler } from '../../src/middleware/problem-handler.ts'
import { type ValidateOptions, validate } from '../../src/middleware/validate.ts'

/** Returns the status, and what reached the handler. */
async function send(
  schemas: ValidateOptions,
  { path = '/', body }: { path?: string; body?: string },
) {
  const reached: string[] = []
  const app = new Hono<{ Variables: BodyVariables }>()
  app.onError(problemHandler())
  app.use(async (c, next) => {
    c.set('portcullis.body', c.req.raw.body)
    await next()
  })
  app.all(schemas.params ? '/:id' : '/', validate(schemas), async (c) => {
    reached.push(
      body === undefined ? c.req.url : await new Response(c.get('portcullis.body')).text(),
    )
    return c.text('')
  })
  const response = await app.request(path, {
    method: body === undefined ? 'GET' : 'POST',
    ...(body !== undefined && { body, headers: { 'content-type': 'application/json' } }),
  })
  const { errors = [] } = response.ok
    ? {}
    : ((await response.json()) as { errors?: { path: string }[] })
  return { status: response.status, reached, paths: errors.map(({ path }) => path) }
}

const EXACT = [
  ...['0', '-0', '1', '-1', '1.0', '1.50', '0.1', '1e3', '1E+2', '1e-7', '123456789012345'],
  ...['9007199254740992', '9007199254740994', '0.30000000000000004', '1e23', '5e-324', '0e999'],
  ...['100000000000000000000000', '1.7976931348623157e308', '0.10000000000000000000'],
]
const INEXACT = [
  ...['9007199254740993', '-9007199254740993', '9007199254740992.5', '18446744073709551615'],
  ...[
    '0.1000000000000000055511151231257827',
    '1.00000000000000000001',
    '1e400',
    '-1e400',
    '1e-400',
  ],
  ...['123456789012345678', '0.123456789012345678901', '9007199254740993e0', '90071992547409.93e2'],
  '1.7976931348623159e308',
]

test.each(EXACT)('%s is exact [S63]', (text) => expect(isExact(text)).toBe(true))
test.each(INEXACT)('%s is not exact [S63]', (text) => expect(isExact(text)).toBe(false))

const digits = fc.stringMatching(/^-?(0|[1-9]\d{0,24})(\.\d{1,24})?([eE][+-]?\d{1,3})?$/)

/** The value as a fraction of whole numbers, without rounding. */
function fractionOf(text: string): readonly [bigint, bigint] {
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text.replace('e+', 'e')) ?? []
  const scale = Number(exponent) - fraction.length
  const number = BigInt(whole + fraction) * (sign === '-' ? -1n : 1n)
  return scale >= 0 ? [number * 10n ** BigInt(scale), 1n] : [number, 10n ** BigInt(-scale)]
}

test('a number is exact if it equals the text of its double, for random numbers [S63]', () => {
  fc.assert(
    fc.property(digits, (text) => {
      const value = Number(text)
      if (!Number.isFinite(value)) return isExact(text) === false
      const [one, below] = fractionOf(text)
      const [other, otherBelow] = fractionOf(String(value))
      return isExact(text) === (one * otherBelow === other * below)
    }),
    { numRuns: 3_000 },
  )
})

const number = z.number()
describe('in a body [S63]', () => {
  test.each(INEXACT)('%s is 422 where a schema reads it, and reaches no handler', async (text) => {
    for (const [schema, body, path] of [
      [z.strictObject({ a: number }), `{"a":${text}}`, '/a'],
      [
        z.strictObject({ a: z.array(z.strictObject({ b: number })) }),
        `{"a":[{"b":1},{"b":${text}}]}`,
        '/a/1/b',
      ],
      [z.record(z.string(), number), `{"a":${text}}`, '/a'],
      [z.looseObject({ a: z.union([number, z.string()]) }), `{"a": ${text} ,"b":2}`, '/a'],
    ] as const) {
      const { status, reached, paths } = await send({ body: schema as never }, { body })
      expect([status, reached]).toEqual([422, []])
      expect(paths).toEqual([path])
    }
    expect((await send({ body: number }, { body: ` ${text} ` })).status).toBeGreaterThanOrEqual(400)
  })

  test.each(EXACT)('%s passes as it is', async (text) => {
    const body = `{"a":${text}}`
    const { status, reached } = await send({ body: z.strictObject({ a: number }) }, { body })
    expect([status, reached]).toEqual([200, [body]])
  })

  test.each(INEXACT)('%s passes where no schema reads it, and in a text', async (text) => {
    for (const [schema, body] of [
      [z.strictObject({ a: z.unknown() }), `{"a":${text}}`],
      [z.looseObject({ b: number }), `{"a":[{"c":${text}}],"b":1}`],
      [z.strictObject({ a: z.string(), b: z.string() }), `{"a":"${text}","b":"\\"${text}"}`],
    ] as const) {
      const { status, reached } = await send({ body: schema as never }, { body })
      expect([status, reached]).toEqual([200, [body]])
    }
  })

  test('a number that a schema converts to a text must be exact as well', async () => {
    const schema = z.strictObject({ a: z.coerce.string() })
    const statusOf = async (a: string) =>
      (await send({ body: schema }, { body: `{"a":${a}}` })).status
    expect(await statusOf('12345678901234567890')).toBe(422)
    expect(await statusOf('12')).toBe(200)
  })

  test('a text that a schema converts to a number must be exact as well', async () => {
    const schema = z.strictObject({ a: z.strictObject({ b: z.coerce.number() }) })
    const statusOf = async (b: string) =>
      (await send({ body: schema }, { body: JSON.stringify({ a: { b } }) })).status
    expect(await statusOf('9007199254740993')).toBe(422)
    expect(await statusOf('12')).toBe(200)
  })

  test('the output of a schema is the number as before', async () => {
    const app = new Hono<{ Variables: BodyVariables }>()
    app.use(async (c, next) => {
      c.set('portcullis.body', c.req.raw.body)
      await next()
    })
    const body = z.looseObject({ a: number })
    app.post('/', validate({ body }), (c) => c.json(c.req.valid('json' as never)))
    const response = await app.request('/', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"a":1,"b":9007199254740993}',
    })
    expect(await response.json()).toEqual({ a: 1, b: 9007199254740992 })
  })
})

describe('in a query, a path and a list [S63]', () => {
  const coerced = z.strictObject({ id: z.coerce.number() })
  const imported = z.strictObject({ id: numberText(number) })
  test.each([...INEXACT.filter((text) => Number.isFinite(Number(text)))])(
    '%s is 422 where a schema reads it as a number',
    async (text) => {
      for (const schema of [coerced, imported])
        for (const [schemas, path] of [
          [{ query: schema }, `/?id=${text}`],
          [{ params: schema }, `/${text}`],
        ] as const)
          expect(await send(schemas, { path })).toMatchObject({ status: 422, reached: [] })
      const list = z.strictObject({ id: listText(z.array(number), { of: 'number' }) })
      expect((await send({ query: list }, { path: `/?id=1,${text}` })).status).toBe(422)
      const json = z.strictObject({ id: jsonText(z.strictObject({ a: number })) })
      const path = `/?id=${encodeURIComponent(`{"a":${text}}`)}`
      expect((await send({ query: json }, { path })).status).toBe(422)
      const repeated = z.strictObject({ id: z.array(z.coerce.number()) })
      expect((await send({ query: repeated }, { path: `/?id=1&id=${text}` })).status).toBe(422)
      // As a text, it is compared as it is.
      const texts = z.strictObject({ id: z.string() })
      expect((await send({ query: texts }, { path: `/?id=${text}` })).status).toBe(200)
    },
  )

  test.each(['', '0x10', '0b11', '0o17', '%20', '%205', '5%20', '%0A'])(
    'the text "%s" is no number, although JavaScript reads one',
    async (text) => {
      expect((await send({ query: coerced }, { path: `/?id=${text}` })).status).toBe(422)
    },
  )

  test.each(['5', '-5', '05', '1.50', '1e3', '.5', '%2B5', '12345678901234'])(
    'the number %s passes',
    async (text) => {
      expect((await send({ query: coerced }, { path: `/?id=${text}` })).status).toBe(200)
    },
  )

  test('a default, and a number that a schema computes from a text, are not compared', async () => {
    const computed = z.strictObject({
      page: z.coerce.number().default(1),
      cents: z.coerce.number().transform((euros) => euros * 100),
      length: z.string().transform((text) => text.length),
    })
    const { status } = await send({ query: computed }, { path: '/?cents=5&length=abc' })
    expect(status).toBe(200)
  })
})

test('a hostile number costs time that is linear in its length', async () => {
  const body = `{"a":[${'0'.repeat(1)}.${'0'.repeat(200_000)}1,${'1'.repeat(200_000)}]}`
  const { status } = await send({ body: z.strictObject({ a: z.array(number) }) }, { body })
  expect(status).toBe(422)
})

describe('digits in the strings of a JSON body', () => {
  afterEach(() => void vi.restoreAllMocks())

  const id = '0b1f6a3e-8f5d-4c52-9d1e-3a2b1c0d9e8f'
  test('without a number that is not exact, cause no second parse', async () => {
    const parse = vi.spyOn(JSON, 'parse')
    for (const text of [id, 'a\\"1e5', '\\\\', 'TWFuMTIzNA1e2==', '\u0031']) {
      const body = JSON.stringify({ text, many: [text, { count: 1.5 }] })
      findInexact(body, { text, many: [] })
    }
    expect(parse).not.toHaveBeenCalled()
  })
  test.each(['9007199254740993', '\\u0039007199254740993', digitsEscaped('9007199254740993')])(
    'are 422 where a schema reads them as another number: %s',
    async (digits) => {
      const schema = z.strictObject({ id: z.string(), count: z.coerce.number() })
      const body = `{"id":"${id}","count":"${digits}"}`
      expect(await send({ body: schema }, { body })).toMatchObject({ status: 422, reached: [] })
    },
  )
  test('do not hide a number behind a string with escapes', async () => {
    const schema = z.strictObject({ id: z.string(), count: z.number() })
    for (const text of ['\\"', '\\\\', '\\\\\\"', `${id}\\"`]) {
      const body = `{"id":"${text}","count":9007199254740993}`
      expect(await send({ body: schema }, { body })).toMatchObject({ status: 422, reached: [] })
    }
  })
})

function digitsEscaped(text: string): string {
  return [...text].map((digit) => `\\u003${digit}`).join('')
}
