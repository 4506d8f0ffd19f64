import { describe, expect, it } from 'vitest'
import { JsonRefused, parseStrictJson } from '../../../src/http/strict-json.ts'

const parse = (text: string, maxDepth = 16) => parseStrictJson(text, { maxDepth })

function checkOf(text: string, maxDepth = 16): string {
  try {
    return `accepted ${JSON.stringify(parse(text, maxDepth))}`
  } catch (error) {
    if (!(error instanceof JsonRefused)) throw error
    return error.check
  }
}

describe('parseStrictJson', () => {
  it('parses every JSON value as JSON.parse does', () => {
    for (const text of [
      '{}',
      '[]',
      'null',
      ' "a" ',
      '-1.5e3',
      '{"a":{"a":[{"a":1},{"a":2}]},"b":"\\"a\\":{"}',
      '{"a:":[1,"x:",{"y":":"}]}',
      '\t{\r\n"a" \t:\n1 , "b" : [ ]}',
    ]) {
      expect(parse(text)).toEqual(JSON.parse(text))
    }
  })

  it('refuses a duplicate name in one object, in any spelling [S18]', () => {
    for (const text of [
      '{"sub":"a","sub":"admin"}',
      '{"sub":"a","\\u0073ub":"admin"}',
      '{"\\u0073\\u0075b":1,"\\u0073ub":2}',
      '{"a":1 \n, "a" \t: 2}',
      '{"a":{"b":1},"c":[{"d":1,"e":2,"d":3}]}',
      '{"":1,"":2}',
      '{"\\"":1,"\\u0022":2}',
      '{"\\\\":1,"\\u005c":2}',
      '{"__proto__":1,"__proto__":2}',
      '{"a":1,"b":{},"a":2}',
    ]) {
      expect(checkOf(text), text).toBe('duplicate_name')
    }
  })

  it('accepts equal names in different objects, and equal values [S18]', () => {
    expect(parse('[{"a":"a"},{"a":["a","a"]},{"A":1,"a":2}]')).toEqual([
      { a: 'a' },
      { a: ['a', 'a'] },
      { A: 1, a: 2 },
    ])
  })

  it('counts the nesting before it parses [S21]', () => {
    expect(checkOf('[[1]]', 1)).toBe('depth')
    expect(parse('[{"a":1}]', 2)).toEqual([{ a: 1 }])
    expect(checkOf('{}', 0)).toBe('depth')
    expect(parse('1', 0)).toBe(1)
    expect(parse('"[[[["', 0)).toBe('[[[[')
    expect(parse(`[${'[],'.repeat(1000)}1]`, 2)).toHaveLength(1001)
    expect(checkOf('['.repeat(100_000))).toBe('depth')
    expect(checkOf('{"a":'.repeat(100_000), 1_000)).toBe('depth')
    expect(checkOf('['.repeat(100_000), 1_000_000)).toBe('syntax')
  })

  it('refuses a byte order mark and everything else that is not JSON', () => {
    for (const text of [
      '\ufeff{}',
      '',
      ' ',
      '{"a":1',
      '"a',
      '"\\',
      '"a":1',
      '["a":1]',
      '{"a":"b":1}',
      '{"\\x":1}',
      '{"a":1,}',
      ']]{}',
      '{"a":01}',
      "{'a':1}",
      '{}{}',
      '\u00a0{}',
    ]) {
      expect(checkOf(text), text).toBe('syntax')
    }
  })

  it('returns names of the prototype as ordinary own properties [S25]', () => {
    const value = parse('{"__proto__":{"admin":true},"constructor":1,"toString":2}') as object
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor', 'toString'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect((value as { admin?: unknown }).admin).toBeUndefined()
  })

  it('does not quote the text in its error', () => {
    expect.assertions(2)
    for (const text of ['{"secret-value":x}', '{"secret-value":1,"secret-value":2}']) {
      try {
        parse(text)
      } catch (error) {
        expect(`${(error as Error).stack} ${String((error as Error).cause)}`).not.toMatch(/secret/)
      }
    }
  })

  it('parses an object of 200,000 names [S63]', () => {
    const names = Array.from({ length: 200_000 }, (_, index) => `"k${index}":0`)
    expect(Object.keys(parse(`{${names.join()}}`) as object)).toHaveLength(200_000)
    expect(checkOf(`{${names.join()},"k0":1}`)).toBe('duplicate_name')
  })
})
