import { describe, expect, test } from 'vitest'
import { inspect } from '../../src/middleware/inspect.ts'
import { inspected } from './app.ts'

const JSON_TYPE = 'application/json'
const FORM = 'application/x-www-form-urlencoded'
const bytes = (...parts: (string | number)[]) =>
  new Uint8Array(
    parts.flatMap((part) => (typeof part === 'number' ? [part] : [...Buffer.from(part, 'latin1')])),
  )
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
const named = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at])))

describe('a query is 400 and never reaches the handler with [S63]', () => {
  test.each([
    ['a repeated name', '?a=1&a=2', 'query_repeated'],
    ['a repeated name in two spellings', '?a=1&%61=2', 'query_repeated'],
    ['a repeated name without values', '?a&a', 'query_repeated'],
    ['an overlong slash', '?f=..%c0%af', 'query_encoding'],
    ['an overlong zero', '?f=%e0%80%80', 'query_encoding'],
    ['Latin-1', '?name=Andr%E9', 'query_encoding'],
    ['a surrogate', '?a=%ed%a0%80', 'query_encoding'],
    ['a truncated escape', '?a=%4', 'query_encoding'],
    ['a non-standard escape', '?a=%u0041', 'query_encoding'],
    ['a zero byte', '?a=b%00', 'query_control'],
    ['a line feed', '?a=b%0d%0aSet-Cookie:x', 'query_control'],
    ['a control character in a name', '?a%07=b', 'query_control'],
    ['a C1 control', '?a=%c2%9b31m', 'query_control'],
    ['__proto__', '?__proto__=1', 'query_prototype_name'],
    ['__proto__ as a key', '?a[__proto__][admin]=1', 'query_prototype_name'],
    ['encoded brackets', '?a%5Bconstructor%5D%5Bprototype%5D=1', 'query_prototype_name'],
    ['dots', '?a.prototype.b=1', 'query_prototype_name'],
    [
      'a thousand and one names',
      `?${Array.from({ length: 1_001 }, (_, at) => `p${at}`).join('&')}`,
      'query_names',
    ],
    ['a value that is too long', `?a=${'x'.repeat(100_001)}`, 'query_length'],
  ])('%s', async (_, query, reason) => {
    const { send, reached, reasons } = inspected({})
    const { status, text } = await send(query)
    expect(status).toBe(400)
    expect(JSON.parse(text)).toMatchObject({ code: 'malformed_request' })
    expect(reasons).toEqual([reason])
    expect(reached).toEqual([])
  })
})

describe('a body is 400 and never reaches the handler with [S63]', () => {
  test.each([
    ['a repeated name', JSON_TYPE, '{"a":1,"\\u0061":2}', 'body_duplicate_name'],
    ['__proto__', JSON_TYPE, '{"a":[{"__proto__":{}}]}', 'body_prototype_name'],
    ['__proto__ escaped', JSON_TYPE, '{"\\u005f_proto__":{}}', 'body_prototype_name'],
    ['constructor', JSON_TYPE, '{"constructor":{"prototype":1}}', 'body_prototype_name'],
    ['an escaped zero byte', JSON_TYPE, '{"a":"x\\u0000"}', 'body_control'],
    ['an escape sequence', JSON_TYPE, '["\\u001b[31m"]', 'body_control'],
    ['a line feed in a name', JSON_TYPE, '{"a\\n":1}', 'body_control'],
    ['a lone surrogate', JSON_TYPE, '["\\ud800"]', 'body_surrogate'],
    ['a lone surrogate in a name', JSON_TYPE, '{"\\udc00":1}', 'body_surrogate'],
    ['33 levels', JSON_TYPE, nested(33), 'body_depth'],
    ['1,001 names', JSON_TYPE, named(1_001), 'body_names'],
    ['a string that is too long', JSON_TYPE, JSON.stringify(['x'.repeat(100_001)]), 'body_length'],
    ['a long name', JSON_TYPE, JSON.stringify({ ['x'.repeat(100_001)]: 1 }), 'body_length'],
    ['invalid JSON', JSON_TYPE, '{a:1}', 'body_syntax'],
    ['invalid JSON of a type with +json', 'application/vnd.api+json', '{a:1}', 'body_syntax'],
    ['bytes that are not UTF-8', JSON_TYPE, bytes('"', 0xff, '"'), 'body_encoding'],
    ['an overlong slash', JSON_TYPE, bytes('"', 0xc0, 0xaf, '"'), 'body_encoding'],
    ['a repeated name in a form', FORM, 'a=1&b=2&a=3', 'body_repeated'],
    ['an overlong slash in a form', FORM, 'f=%c0%af', 'body_encoding'],
    ['a zero byte in a form', FORM, 'a=%00', 'body_control'],
    ['a line feed in a form name', FORM, 'a%0a=1', 'body_control'],
    ['a prototype in a form', FORM, 'a[constructor]=1', 'body_prototype_name'],
    ['a control character in a text', 'text/plain', 'bell\u0007', 'body_control'],
    ['a text in Latin-1', 'text/plain', bytes('Andr', 0xe9), 'body_encoding'],
  ])('%s', async (_, type, body, reason) => {
    const { send, reached, reasons } = inspected({})
    expect((await send('', body, type)).status).toBe(400)
    expect(reasons).toEqual([reason])
    expect(reached).toEqual([])
  })

  test('a parameter that the query already has', async () => {
    const { send, reached, reasons } = inspected({})
    expect((await send('?role=reader', 'role=admin', FORM)).status).toBe(400)
    expect(reasons).toEqual(['body_repeated'])
    expect(reached).toEqual([])
  })
})

describe('a body that cannot be inspected is 415 and never reaches the handler:', () => {
  test.each([
    ['no type', undefined, undefined],
    ['two types', 'application/json, text/plain', undefined],
    ['another charset', 'application/json; charset=utf-16', undefined],
    ['another charset of a form', `${FORM};charset=latin1`, undefined],
    ['multipart', 'multipart/form-data; boundary=x', undefined],
    ['XML', 'application/xml', undefined],
    ['a compressed body', JSON_TYPE, 'gzip'],
    ['a type that only has the same prefix', 'text/plainer', undefined],
  ])('%s', async (_, type, encoding) => {
    const { send, reached } = inspected({})
    // Bytes, because the platform adds a type to a string.
    expect((await send('', bytes('{}'), type, encoding)).status).toBe(415)
    expect(reached).toEqual([])
  })
})

describe('valid input', () => {
  test.each([
    ['JSON', JSON_TYPE, ' {"a" : 1.0, "b":"\\u0041\\t\\r\\n", "c": "constructor"}\n'],
    ['JSON with another type', 'application/problem+json; charset="UTF-8"', '{}'],
    ['32 levels', JSON_TYPE, nested(32)],
    ['1,000 names', JSON_TYPE, named(1_000)],
    ['a form', `${FORM}; charset=utf-8`, 'a=b+c%0D%0Ad&&e&=f&g=h=i&j=%252e'],
    ['a text', 'Text/Plain', 'tab\tand\r\nline \u2028 \ud83d\ude00 ../../etc/passwd'],
  ])('is forwarded byte for byte: %s', async (_, type, body) => {
    const { send, reached } = inspected({})
    const query = '?q=%C3%A4+%F0%9F%98%80&r=100%25'
    expect((await send(query, body, type)).status).toBe(200)
    expect(reached).toEqual([{ query, body: new TextEncoder().encode(body) }])
  })

  test('a request without a body needs no type', async () => {
    const { send, reached } = inspected({})
    expect((await send('?a=1')).status).toBe(200)
    expect(reached).toHaveLength(1)
  })

  test('bounds can be set for each route', async () => {
    const { send, reached, reasons } = inspected({
      maxDepth: 1,
      maxNames: 2,
      maxStringChars: 3,
      repeatable: ['tag'],
    })
    const statuses = [
      await send('?tag=a&tag=b'),
      await send('?tag=a&tag=b&tag=c'),
      await send('?tag=a&oth=b', 'x=1', FORM),
      await send('', '{"a":1,"b":2}', JSON_TYPE),
      await send('', '{"a":[]}', JSON_TYPE),
      await send('', '{"a":1,"b":2,"c":3}', JSON_TYPE),
      await send('', '["abcd"]', JSON_TYPE),
    ].map(({ status }) => status)
    expect(statuses).toEqual([200, 400, 400, 200, 400, 400, 400])
    expect(reasons).toEqual([
      'query_names',
      'body_names',
      'body_depth',
      'body_names',
      'body_length',
    ])
    expect(reached).toHaveLength(2)
  })
})

test('invalid options are refused when the app is built', () => {
  for (const options of [
    { maxDepth: 0 },
    { maxNames: 0.5 },
    { jsonRpc: { methods: {}, maxBatch: 51 } },
  ])
    expect(() => inspect(options)).toThrow(TypeError)
  const guarded = { methods: { ping: { permission: 'a:b' } } }
  expect(() => inspect({ jsonRpc: guarded })).toThrow('authorizer')
})
