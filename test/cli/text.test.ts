import { describe, expect, test } from 'vitest'
import { headingLine, line, record, table, visible, visibleJson } from '../../cli/text.ts'

const HOSTILE = 'a\u001b[2J\u0007\r\n\u0085\u009b31m\u202eb\u2028\ufeff\ud800\u{e0041}z'
const PRINTED = /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]*$/u

describe('what is printed cannot command a terminal:', () => {
  test('text shows what it would have obeyed', () => {
    expect(visible('red \u001b[31m')).toBe('red \\u{1b}[31m')
    expect(visible(HOSTILE)).toMatch(PRINTED)
    expect(visible('Zoë 東京 🦊')).toBe('Zoë 東京 🦊')
  })

  test('JSON escapes it, and says the same to a parser', () => {
    const value = { [HOSTILE]: [HOSTILE, 1, null] }
    const json = visibleJson(value)
    expect(json).toMatch(PRINTED)
    expect(JSON.parse(json)).toEqual(value)
  })

  test('tables and records neither', () => {
    const row = { name: HOSTILE, nested: { deep: HOSTILE }, list: [HOSTILE] }
    for (const text of [table([row], ['name', 'nested.deep', 'list']), record(row)])
      for (const printed of text.split('\n')) expect(printed).toMatch(PRINTED)
  })
})

describe('for people:', () => {
  test('a table has a heading, aligned columns, and a dash for nothing', () => {
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

  test('a heading names a member of a member by words', () => {
    expect(table([], ['actor.subject', 'requestId'])).toBe('ACTOR SUBJECT  REQUEST ID')
  })

  test('rows that come one by one stand below their heading, as far as they fit', () => {
    const columns = ['a.b', 'name', 'last']
    const widths = { 'a.b': 5, name: 6 }
    expect([
      headingLine(columns, widths),
      line({ a: { b: 1 }, name: 'x', last: 'y' }, columns, widths),
      line({ a: { b: 1234567 }, name: 'x', last: null }, columns, widths),
    ]).toEqual(['A B    NAME    LAST', '1      x       y', '1234567  x       -'])
  })

  test('a record has a line for each member that is there', () => {
    expect(record({ id: '1', tenant: null, createdAt: 'now', gone: undefined })).toBe(
      ['id         1', 'createdAt  now'].join('\n'),
    )
  })

  test('names of inherited members find nothing', () => {
    expect(line({ a: { b: 1 } }, ['a.b', 'constructor', 'a.toString', 'b.c'])).toBe('1  -  -  -')
  })
})
