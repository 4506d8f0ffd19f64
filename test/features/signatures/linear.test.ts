import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { tokenizeSql } from '../../../src/features/signatures/sql-tokens.ts'
import { signatureOf } from './signature-figures.ts'

const FOLDER = resolve(import.meta.dirname, '../../../src/features/signatures')
const CHARS = 100_000

/**
 * Returns the regular expressions of a file as written, and the fragments that they are built from.
 */
function patternsIn(file: string): { readonly source: string; readonly flags: string }[] {
  const code = readFileSync(join(FOLDER, file), 'utf8').replace(
    /\/\*\*?[\s\S]*?\*\/\n|\/\/ .*$/gm,
    '',
  )
  const literals = [
    ...code.matchAll(
      /(?<=[=(\s])\/((?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\n\\[*])(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\n\\[])*)\/([a-z]*)/g,
    ),
  ]
  const parts = [...code.matchAll(/String\.raw`([^`]*)`/g)]
  return [...literals, ...parts].map(([, source = '', flags = '']) => ({ source, flags }))
}

/** Returns the unbounded quantifiers of a pattern. */
function endlessIn(source: string): string[] {
  const bare = source.replace(/\\./g, 'x').replace(/\[[^\]]*\]/g, 'x')
  return bare.match(/[*+]|\{\d+,\}/g) ?? []
}

describe('the cost of a hostile text is bounded [S63]:', () => {
  const patterns = readdirSync(FOLDER).flatMap((file) =>
    patternsIn(file).map((pattern) => ({ file, ...pattern })),
  )

  test('the search finds the patterns', () => {
    expect(patterns.length).toBeGreaterThan(90)
    expect(endlessIn('a[+*]\\+b{1,3}c*(?:d+)e{2,}')).toEqual(['*', '+', '{2,}'])
  })

  // An unanchored, unbounded pattern is tried from each position to the end, which is quadratic.
  test('a pattern that is searched in a text has no unbounded repetition', () => {
    const endless = patterns.filter(
      ({ source, flags }) =>
        !flags.includes('y') && !source.startsWith('^') && endlessIn(source).length > 0,
    )
    expect(endless).toEqual([])
  })

  test.each([
    "'",
    '"',
    '<a ',
    '<a b="',
    "<a b='",
    '<',
    '/*',
    '/**/',
    '/*!',
    '--',
    '#\n',
    '(',
    ';',
    '; cat ',
    '|a',
    '`',
    '$(',
    '../',
    '%2e',
    '&#x',
    '\\',
    ' ',
    "''",
    "' or ",
    'or 1=',
    'java ',
    '1,',
    '-',
    'on=',
    '" a=b ',
    '{{a',
    ";c'a'",
    '|/a/',
    'union ',
    '<a onload',
    '<a = ',
    '<a `\'"',
    '0x',
    '(((1)))',
    "'||",
    '{{',
    '${${',
    '{{__class__',
    '|filter(',
    '$ne',
    '[$ne',
    "';",
    '(&(!(',
    ')(a=',
    'a:1.',
    'PHNj',
    'a\\b$',
  ])('a text of only %j is read in linear time', (unit) => {
    for (const opening of ['', "x' or ", '<a ', '1;'])
      expect(['string', 'undefined']).toContain(
        typeof signatureOf(opening + unit.repeat(CHARS / unit.length)),
      )
  })

  test('in a text of SQL tokens a bounded number of them is read', () => {
    const at = tokenizeSql('1 + '.repeat(CHARS), 0)
    expect(at(23).kind).toBe('arithmetic')
    expect(at(24).kind).toBe('end')
    expect(at(CHARS).kind).toBe('end')
  })
})
