import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Fields, fieldsOf, receivedFields } from '../../../src/runtimes/node/fields.ts'

const name = fc.constantFrom(
  'Accept',
  'accept',
  'Vary',
  'Set-Cookie',
  'set-cookie',
  'Cookie',
  'X-A',
)
const value = fc.stringMatching(/^[!-~](?:[ -~]{0,8}[!-~])?$/)
const change = fc.oneof(
  fc.tuple(fc.constantFrom('set', 'append'), name, value),
  fc.tuple(fc.constant('delete'), name, fc.constant('')),
)

const sorted = (entries: Iterable<[string, string]>) =>
  [...entries].sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))

describe('Fields', () => {
  test('are what Headers are after any changes', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 12 }), name, (changes, asked) => {
        const headers = new Headers()
        const fields = new Fields()
        for (const [how, changed, to] of changes)
          for (const target of [headers, fields]) target[how as 'set'](changed, to)
        expect(sorted(fields)).toEqual(sorted(headers))
        expect(fields.get(asked)).toBe(headers.get(asked))
        expect(fields.has(asked)).toBe(headers.has(asked))
        expect(fields.getSetCookie()).toEqual(headers.getSetCookie())
        expect([...fields.keys()].sort()).toEqual([...headers.keys()].sort())
        expect([...fields.values()].sort()).toEqual([...headers.values()].sort())
        const seen: [string, string][] = []
        fields.forEach((each, of) => {
          seen.push([of, each])
        })
        expect(seen).toEqual([...fields])
        expect(fields.flat()).toEqual([...fields].flat())
        expect(new Response(null, { headers: fields as unknown as Headers }).headers).toEqual(
          headers,
        )
      }),
    )
  })

  test('of a request join all fields of one name', () => {
    const raw = ['Accept', 'a', 'COOKIE', 'a=1', 'accept', 'b', 'cookie', 'b=2', 'Set-Cookie', 'c']
    expect([...receivedFields(raw)]).toEqual([
      ['accept', 'a, b'],
      ['cookie', 'a=1; b=2'],
      ['set-cookie', 'c'],
    ])
  })

  test('of a response join all fields of one name but Set-Cookie', () => {
    const fields = fieldsOf({ vary: ['a', 'b'], 'set-cookie': ['c=1', 'd=2'], etag: 'e' })
    expect(fields.flat()).toEqual([
      ...['vary', 'a, b', 'etag', 'e'],
      ...['set-cookie', 'c=1', 'set-cookie', 'd=2'],
    ])
  })
})
