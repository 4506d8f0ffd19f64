/** Statements as each database gets them. */
import { expect, test } from 'vitest'
import { filterOf, probesOf, term } from '../../../src/audit/blocks/terms.ts'
import { D1 } from '../../../src/audit/sql/d1/consumer-database.ts'
import { firstOf } from '../../../src/audit/sql/database.ts'
import type { StoringDialect } from '../../../src/audit/sql/dialect.ts'
import { mayContain } from '../../../src/audit/sql/filter-condition.ts'
import { POSTGRES } from '../../../src/audit/sql/postgres/dialect.ts'
import { SQLITE } from '../../../src/audit/sql/sqlite/storing-dialect.ts'
import { contains, joined, listed, render, sql, text } from '../../../src/audit/sql/statement.ts'
import { KINDS, startDatabase } from '../databases.ts'
import { anEvent } from '../event.ts'

const BYTES = new Uint8Array([1])
const HOSTILE = "x' OR 1=1 -- ? $1"

test.each<[string, ReturnType<typeof sql>, string, string, readonly unknown[]]>([
  ['no value', sql`SELECT 1`, 'SELECT 1', 'SELECT 1', []],
  [
    'values of each type',
    sql`a = ${'x'} AND b = ${7} AND c = ${BYTES} AND d = ${null}`,
    'a = ? AND b = ? AND c = ? AND d = ?',
    'a = $1::text AND b = $2::bigint AND c = $3::bytea AND d = $4',
    ['x', 7, BYTES, null],
  ],
  ['a hostile value', sql`a = ${HOSTILE}`, 'a = ?', 'a = $1::text', [HOSTILE]],
  [
    'parts within parts',
    sql`SELECT ${text('a, b')} FROM t WHERE ${joined([sql`a = ${1}`, sql`b IN (${listed(['x', 'y'])})`], ' AND ')}`,
    'SELECT a, b FROM t WHERE a = ? AND b IN (?, ?)',
    'SELECT a, b FROM t WHERE a = $1::bigint AND b IN ($2::text, $3::text)',
    [1, 'x', 'y'],
  ],
  [
    'what the databases write differently',
    sql`${contains(text('body'), HOSTILE)}`,
    'instr(body, ?) > 0',
    'strpos(body, $1::text) > 0',
    [HOSTILE],
  ],
])('%s', (_what, statement, sqlite, postgres, values) => {
  expect(render(statement, SQLITE)).toEqual({ text: sqlite, values })
  expect(render(statement, POSTGRES)).toEqual({ text: postgres, values })
})

const rows = {
  table: 't',
  columns: ['a', 'n'],
  integers: new Set(['n']),
  rows: [
    ['x', 1],
    ['y', null],
  ],
} as const
const rendered = (dialect: StoringDialect, skipsKnown = false) =>
  dialect.insert({ ...rows, skipsKnown }).map((one) => render(one, dialect))

test('SQLite inserts rows with one statement for each, which it keeps', () => {
  expect(rendered(SQLITE)).toEqual([
    { text: 'INSERT INTO t (a, n) VALUES (?, ?)', values: ['x', 1] },
    { text: 'INSERT INTO t (a, n) VALUES (?, ?)', values: ['y', null] },
  ])
})

test('D1 inserts rows with one statement, and can skip rows that it has already', () => {
  expect(rendered(D1, true)).toEqual([
    {
      text: 'INSERT INTO t (a, n) SELECT value ->> 0, value ->> 1 FROM json_each(?) WHERE true ON CONFLICT DO NOTHING',
      values: ['[["x",1],["y",null]]'],
    },
  ])
  const long = ['x'.repeat(200_000), 1] as const
  expect(D1.insert({ ...rows, rows: [long, long, long] })).toHaveLength(3)
  expect(D1.insert({ ...rows, rows: [] })).toEqual([])
})

test('PostgreSQL inserts rows as an array for each column', () => {
  expect(rendered(POSTGRES)).toEqual([
    {
      text: 'INSERT INTO t (a, n) SELECT * FROM unnest($1::text[], $2::bigint[])',
      values: [
        ['x', 'y'],
        [1, null],
      ],
    },
  ])
})

test.each(KINDS)(
  '%s finds in a filter what events are searched by, and little else',
  async (kind) => {
    const { db, close } = await startDatabase(kind)
    try {
      const terms = filterOf([anEvent({ route: '/orders/:id', status: 418 })])
      const has = async (one: string) => {
        const found = sql`SELECT 1 AS found FROM (SELECT ${terms} AS terms) AS block WHERE ${mayContain(one)}`
        return (await firstOf(db, found)) !== undefined
      }
      const isIn = (one: string) =>
        probesOf(one).every((probe) => {
          const byte = terms[(probe >>> 3) % terms.length] ?? 0
          return (byte & (1 << (probe & 7))) !== 0
        })
      expect(await has(term('route', '/orders/:id'))).toBe(true)
      expect(await has(term('status', 418))).toBe(true)
      const others = Array.from({ length: 200 }, (_, at) => term('subject', `user-${at}`))
      for (const one of others) expect(await has(one)).toBe(isIn(one))
      expect(others.filter(isIn).length).toBeLessThan(10)
    } finally {
      await close()
    }
  },
)
