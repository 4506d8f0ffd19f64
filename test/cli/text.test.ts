import { stripVTControlCharacters } from 'node:util'
import { createColors } from 'picocolors'
import { describe, expect, test } from 'vitest'
import { hasColors } from '../../cli/terminal.ts'
import { headingLine, line, record, table, visible, visibleJson } from '../../cli/text.ts'
import { runCli } from './command-line.ts'

const HOSTILE = 'a\u001b[2J\u0007\r\n\u0085\u009b31m\u202eb\u2028\ufeff\ud800\u{e0041}\u3164\ufe0fz'
const PRINTED = /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]*$/u

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

describe('a table on a terminal', () => {
  const colors = createColors(false)
  const columns = ['id', 'roles', 'note']
  const rows = [
    { id: '7f3c2b1a-9d8e', roles: ['reader', 'writer', 'auditor'], note: 'of the nightly report' },
    { id: '1a2b3c4d-5e6f', roles: [], note: null },
  ]

  test('is as wide as its text if it fits', () => {
    expect(table(rows, columns, { width: 61, colors })).toBe(table(rows, columns))
  })

  test('wraps cells between words if it does not fit, and breaks no id', () => {
    expect(table(rows, columns, { width: 44, colors })).toBe(
      [
        'ID             ROLES          NOTE',
        '7f3c2b1a-9d8e  reader writer  of the',
        '               auditor        nightly',
        '                              report',
        '1a2b3c4d-5e6f  -              -',
      ].join('\n'),
    )
  })

  test('is a block for each row if words do not fit', () => {
    expect(table(rows, columns, { width: 20, colors })).toBe(
      [
        'id     7f3c2b1a-9d8e',
        'roles  reader writer auditor',
        'note   of the nightly report',
        '',
        'id  1a2b3c4d-5e6f',
      ].join('\n'),
    )
  })

  test('has no line that is wider, at any width at which its words fit', () => {
    for (let width = 32; width < 70; width++) {
      const lines = table(rows, columns, { width, colors }).split('\n')
      expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(width)
    }
  })

  test('aligns characters of two columns, and colors do not change the alignment', () => {
    const wide = [
      { name: '東京', decision: 'deny' },
      { name: 'abcdef', decision: 'allow' },
    ]
    const plain = ['NAME    DECISION', '東京    deny', 'abcdef  allow'].join('\n')
    expect(table(wide, ['name', 'decision'])).toBe(plain)
    const style = { width: 80, colors: createColors(true) }
    const colored = table(wide, ['name', 'decision'], style)
    expect(colored).toContain('\u001b[31mdeny\u001b[39m')
    expect(stripVTControlCharacters(colored).replace(/ +$/gm, '')).toBe(plain)
  })
})

describe('colors', () => {
  const terminal = { isTTY: true, columns: 80, hasColors: () => true }
  const simple = { isTTY: true, columns: 80, hasColors: () => false }
  const pipe = { columns: 0, hasColors: () => true } as unknown as typeof terminal

  test.each([
    ['a terminal', terminal, {}, true],
    ['a terminal without colors', simple, {}, false],
    ['a pipe', pipe, {}, false],
    ['a pipe of a CI job', pipe, { CI: 'true' }, false],
    ['NO_COLOR on a terminal', terminal, { NO_COLOR: '1' }, false],
    ['an empty NO_COLOR on a terminal', terminal, { NO_COLOR: '' }, true],
    ['FORCE_COLOR on a pipe', pipe, { FORCE_COLOR: '1' }, true],
    ['FORCE_COLOR=0 on a terminal', terminal, { FORCE_COLOR: '0' }, false],
    ['NO_COLOR and FORCE_COLOR', terminal, { NO_COLOR: '1', FORCE_COLOR: '1' }, false],
  ])('for %s', (_, stream, env, expected) => {
    expect(hasColors(stream, env)).toBe(expected)
  })

  test('are in the help and the errors of a pipe only with FORCE_COLOR', async () => {
    for (const args of [['--help'], ['keys', 'lst']]) {
      const [plain, forced, none] = await Promise.all([
        runCli(args),
        runCli(args, { env: { FORCE_COLOR: '1' } }),
        runCli(args, { env: { FORCE_COLOR: '1', NO_COLOR: '1' } }),
      ])
      expect(plain.stdout + plain.stderr).not.toContain('\u001b')
      expect(forced.stdout + forced.stderr).toContain('\u001b[')
      expect(stripVTControlCharacters(forced.stdout + forced.stderr)).toBe(
        plain.stdout + plain.stderr,
      )
      // Node itself warns about the two variables.
      expect(none.stdout + none.stderr).not.toContain('\u001b')
    }
  })
})
