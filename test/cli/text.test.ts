import { describe, expect, test } from 'vitest'
import { headingLine, line, record, table, visible, visibleJson } from '../../cli/text.ts'

const HOSTILE = 'a\u001b[2J\u0007\r\n\u0085\u009b31m\u202eb\u2028\ufeff\ud800\u{e0041}z'
const PRINTED = /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]*$/u

describe('control characters are escaped for the terminal', () => {
  test('in text', () => {
    expect(visible('red \u001b[31m')).toBe('red \\u{1b}[31m')
    expect(visible(HOSTILE)).toMatch(PRINTED)
    expect(visible('Zoë 東京 🦊')).toBe('Zoë 東京 🦊')
  })

  test('in JSON, which parses to the same value', () => {
    const value = { [HOSTILE]: [HOSTILE, 1, null] }
    const json = visibleJson(value)
    expect(json).toMatch(PRINTED)
    expect(JSON.parse(json)).toEqual(value)
  })

  test('in tables and records', () => {
    const row = { name: HOSTILE, nested: { deep: HOSTILE }, list: [HOSTILE] }
    for (const text of [table([row], ['name', 'nested.deep', 'list']), record(row)])
      for (const printed of text.split('\n')) expect(printed).toMatch(PRINTED)
  })
})

describe('the text format', () => {
  test('of a table has a heading, aligned columns, and a dash for an empty value', () => {
    const rows = [
      { clientId: 'a', roles: ['x', 'y'], disabled: true },
      { clientId: 'bbbbbbbbbbbb', roles: [], disabled: false, extra: 1 },
    ]
    expect(table(rows, ['clientId', 'roles', 'disabled', 'tenant'])).toBe(
      [
        'CLIENT ID     ROLES  DISABLED  TENANT',
        'a             x y    yes       -',
        'bbbbbbbbbbbb  -      no        -',
      ].join('\n'),
    )
  })

  test('of a heading names nested members by words', () => {
    expect(table([], ['actor.subject', 'requestId'])).toBe('ACTOR SUBJECT  REQUEST ID')
  })

  test('of single rows keeps the width of their heading if the values fit', () => {
    const columns = ['a.b', 'name', 'last']
    const widths = { 'a.b': 5, name: 6 }
    expect([
      headingLine(columns, widths),
      line({ a: { b: 1 }, name: 'x', last: 'y' }, columns, widths),
      line({ a: { b: 1234567 }, name: 'x', last: null }, columns, widths),
    ]).toEqual(['A B    NAME    LAST', '1      x       y', '1234567  x       -'])
  })

  test('of a record has a line for each member with a value', () => {
    expect(record({ id: '1', tenant: null, createdAt: 'now', gone: undefined })).toBe(
      ['id         1', 'createdAt  now'].join('\n'),
    )
  })

  test('ignores inherited members', () => {
    expect(line({ a: { b: 1 } }, ['a.b', 'constructor', 'a.toString', 'b.c'])).toBe('1  -  -  -')
  })
})
