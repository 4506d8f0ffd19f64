import { expect, test } from 'vitest'
import { insertion, numbered } from '../../../src/audit/sql/postgres/dialect.ts'

test.each([
  ['SELECT 1', [], 'SELECT 1', []],
  ['a = ? AND b = ?', ['x', 7], 'a = $1::text AND b = $2::bigint', ['x', 7]],
  [
    'a = ?2 AND b = ?2 AND c = ?1',
    [1, 'x'],
    'a = $1::text AND b = $1::text AND c = $2::bigint',
    ['x', 1],
  ],
  ['a = ?3', [1, 2, null], 'a = $1', [null]],
  ['a = ?12', [...Array(11).fill(0), 'x'], 'a = $1::text', ['x']],
  ['a = ?', [new Uint8Array([1])], 'a = $1::bytea', [new Uint8Array([1])]],
])('%j has numbered parameters with the types of their values', (sql, values, text, used) => {
  expect(numbered(sql, values)).toEqual({ sql: text, values: used })
})

test('a parameter without a value is a mistake', () => {
  expect(() => numbered('a = ? AND b = ?', [1])).toThrow(TypeError)
})

test('rows are inserted as an array for each column', () => {
  const rows = {
    table: 't',
    columns: ['a', 'n'],
    integers: new Set(['n']),
    rows: [
      ['x', 1],
      ['y', null],
    ],
  }
  expect(insertion(rows)).toEqual({
    sql: 'INSERT INTO t (a, n) SELECT * FROM unnest($1::text[], $2::bigint[])',
    values: [
      ['x', 'y'],
      [1, null],
    ],
  })
})
