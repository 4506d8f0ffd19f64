import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Placeholder,
  parseTemplate,
  type Template,
} from '../../../../src/access/relations/template.ts'
import { isTuple } from '../../../../src/access/relations/tuple.ts'

function template(text: string): Template {
  const parsed = parseTemplate(text)
  if (typeof parsed === 'string') throw new Error(`${text}: ${parsed}`)
  return parsed
}

const fill = (text: string, values: Readonly<Record<string, string>>) =>
  template(text).fill((placeholder) => values[nameOf(placeholder)])
const nameOf = (placeholder: Placeholder) =>
  placeholder.kind === 'param' ? placeholder.name : placeholder.kind

describe('a template', () => {
  test.each([
    ['order:{params.id}', { id: '1' }, 'order:1'],
    ['order:{params.id}', { id: 'a:b#x@y*' }, 'order:a%3Ab%23x@y%2A'],
    ['order:{params.id}', { id: '*' }, 'order:%2A'],
    ['order:{params.id}', { id: 'a%3Ab' }, 'order:a%253Ab'],
    ['user:{subject}', { subject: 'anne smith' }, 'user:anne%20smith'],
    ['user:{issuer}|{subject}', { issuer: 'https://a', subject: 'anne' }, 'user:https%3A//a|anne'],
    [
      'user:{issuer}|{subject}',
      { issuer: 'https://a', subject: 'b|c' },
      'user:https%3A//a|b%257Cc',
    ],
    ['group:{tenant}#member', { tenant: 'acme' }, 'group:acme#member'],
    ['organisation:main', {}, 'organisation:main'],
    ['user:*', {}, 'user:*'],
  ])('%s with %j is %s', (text, values, expected) => {
    expect(fill(text, values)).toBe(expected)
  })

  test.each([
    ['order:{params.id}', {}],
    ['order:{params.id}', { id: '' }],
    ['order:{params.id}', { id: 'x'.repeat(513) }],
    ['order:{params.id}', { id: '\ud800' }],
    ['order:{params.id}', { id: '#'.repeat(200) }],
    ['user:{issuer}|{subject}', { issuer: 'x'.repeat(300), subject: 'y'.repeat(300) }],
  ])('%s with %j has no result', (text, values) => {
    expect(fill(text, values as Record<string, string>)).toBeUndefined()
  })

  test.each([
    ['', /type:id/],
    ['order', /type:id/],
    ['{params.type}:1', /type:id/],
    ['order:', /requires an id/],
    ['order:{id}', /unknown placeholder \{id\}/],
    ['order:{params.}', /unknown placeholder/],
    ['order:{constructor}', /unknown placeholder/],
    ['order:{params.a}{params.b}', /between two placeholders/],
    ['order:{params.a}x{params.b}', /between two placeholders/],
    ['order:{params.a}%25{params.b}', /between two placeholders/],
    ['order:{params.a}%20{params.b}', /between two placeholders/],
    ['order:{params.a', /character that ids cannot contain/],
    ['order:a b', /character that ids cannot contain/],
    ['order:a:b', /character that ids cannot contain/],
    ['order:*x', /character that ids cannot contain/],
    ['order:%', /character that ids cannot contain/],
    ['group:x#', /invalid relation name/],
    ['group:x#a b', /invalid relation name/],
  ])('%j is refused', (text, why) => {
    expect(parseTemplate(text)).toMatch(why)
  })

  test('any values give valid text, and different values give different text [S65]', () => {
    // Every separator and escape character, and their look-alikes, so that collisions would be
    // likely.
    const value = fc.string({ unit: fc.constantFrom(...'|/:%#*2357CFab@;é\u0000 '), maxLength: 6 })
    const pair = fc.tuple(value, value)
    for (const text of [
      'o:{params.a}|{params.b}',
      'o:x/{params.a}/y|{params.b}/z',
      'o:{params.a}%3A/{params.b}',
    ]) {
      fc.assert(
        fc.property(pair, pair, (one, other) => {
          const [left, right] = [one, other].map(([a, b]) => fill(text, { a, b }))
          const isSame = one[0] === other[0] && one[1] === other[1]
          if (left === undefined || right === undefined) return
          expect(isTuple({ object: left, relation: 'r', subject: right })).toBe(true)
          expect(left === right).toBe(isSame)
        }),
        { numRuns: 20_000 },
      )
    }
  })

  test.each([
    ...['o:{params.a}|{params.b}', 'o:{params.a}%3A{params.b}', 'o:{params.a}%23{params.b}'],
    ...['o:{params.a}%2A-%25{params.b}', 'o:%25{params.a}%3Ax{params.b}%2A'],
  ])('no value can cross a separator: %s [S65]', (text) => {
    const letters = [...'%25|-x', ':', '#', '*', '3A', '23', '2A']
    const values = [...letters, ...letters.flatMap((a) => letters.map((b) => a + b))]
    const pairs = values.flatMap((a) => values.map((b) => ({ a, b })))
    expect(new Set(pairs.map((pair) => fill(text, pair))).size).toBe(pairs.length)
  })
})
