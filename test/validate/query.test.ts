import { describe, expect, test } from 'vitest'
import { queryParameters } from '../../src/http/query.ts'

/** Every character with a meaning in a query, and some without. */
const PIECES = ['a', 'é', '=', '&', '?', '#', '+', '%', '%41', '%zz', ';', ' ', '\t', '\ud800', '~']

describe('a query', () => {
  test('is parsed as the platform parses it, for any combination of characters', () => {
    for (const first of PIECES)
      for (const second of PIECES)
        for (const third of PIECES)
          for (const fourth of PIECES) {
            const query = first + second + third + fourth
            expect([...queryParameters(query)], query).toEqual([
              ...new URLSearchParams(`?${query}`),
            ])
          }
  })

  test('of printable ASCII needs no decoding: each character represents itself', () => {
    for (let code = 0x20; code < 0x80; code++) {
      const query = `a${String.fromCharCode(code)}b=c${String.fromCharCode(code)}`
      expect([...queryParameters(query)]).toEqual([...new URLSearchParams(`?${query}`)])
    }
  })
})
