/** Media types of bodies that the gateway reads. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hasCoding, utf8MediaType } from '../../src/http/media-type.ts'

const JSON_TYPE = 'application/json'
const token = fc.stringMatching(/^[!#$%&'*+.^_`|~\w-]{1,12}$/)
const space = fc.stringMatching(/^[ \t]{0,2}$/)
const quoted = fc.stringMatching(/^"(?:[^"\\\r\n]|\\.){0,12}"$/)

test('a type with any parameters but `charset` is the type (RFC 9110 section 5.6.6)', () => {
  const parameter = fc
    .tuple(space, space, fc.option(fc.tuple(token, fc.oneof(token, quoted))))
    .filter(([, , pair]) => pair?.[0].toLowerCase() !== 'charset')
    .map(([before, after, pair]) => `${before};${after}${pair === null ? '' : pair.join('=')}`)
  fc.assert(
    fc.property(fc.array(parameter), space, (parameters, end) => {
      expect(utf8MediaType(JSON_TYPE + parameters.join('') + end)).toBe(JSON_TYPE)
    }),
  )
})

test.each([...['utf-8', 'UTF-8', 'utf8', '"utf-8"', '"UTF8"']])(
  '`charset=%s` is UTF-8',
  (charset) => {
    for (const text of [
      `;charset=${charset}`,
      ` ; Charset = ${charset}`,
      `;a=b;charset=${charset};`,
    ])
      expect(utf8MediaType(`Application/JSON${text}`)).toBe(JSON_TYPE)
  },
)

test.each([
  undefined,
  '',
  'json',
  'application/',
  'application/json, text/plain',
  'application/json text/plain',
  'application/json;charset=utf-16',
  'application/json;charset=iso-8859-1',
  'application/json;charset=',
  'application/json;charset',
  'application/json;charset=""',
  'application/json;charset=utf-8;charset=utf-7',
  'application/json;x=";charset=utf-7;charset=utf-8',
  'application/json;x="a" b',
  'application/json;"x"=a',
  'application/json\u00a0',
])('%j is no type of a body that every reader reads as UTF-8', (text) => {
  expect(utf8MediaType(text)).toBeUndefined()
})

test('a parameter in quotation marks hides no charset, and another charset is found behind it', () => {
  expect(utf8MediaType('application/json;x=";charset=utf-16"')).toBe(JSON_TYPE)
  expect(utf8MediaType('application/json;x="\\";";charset=utf-16')).toBeUndefined()
})

test('`identity` in any case is no coding (RFC 9110 section 8.4.1)', () => {
  for (const text of [undefined, '', 'identity', 'Identity', ' identity '])
    expect(hasCoding(text)).toBe(false)
  for (const text of ['gzip', 'identity, gzip', 'br', 'x']) expect(hasCoding(text)).toBe(true)
})
