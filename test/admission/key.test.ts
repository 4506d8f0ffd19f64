import { describe, expect, test } from 'vitest'
import { keyPart } from '../../src/admission/key.ts'

const hostile = [
  '',
  'alice',
  'a:b',
  'a%3Ab',
  'a*',
  '*',
  '{a}',
  'a\u0000',
  'a\r\nDEL x',
  '~',
  '%7E',
  "it's (a) test!",
  '\ud800',
  '\ud801',
  '\ufffd',
  'é',
  'e\u0301',
  'x'.repeat(160),
  'x'.repeat(161),
  'x'.repeat(10_240),
  `${'x'.repeat(10_239)}y`,
  ':'.repeat(100),
]

describe('R18: key parts', () => {
  test('are bounded, and hold no separator, pattern, brace or control character', async () => {
    for (const text of hostile) {
      const part = await keyPart(text)
      expect(part.length).toBeLessThanOrEqual(160)
      expect(part).toMatch(/^~?[A-Za-z0-9_.%-]*$/)
    }
  })

  test('never collide', async () => {
    const parts = await Promise.all(hostile.map(keyPart))
    expect(new Set(parts).size).toBe(hostile.length)
    // A text that looks like the hash of another is escaped, so it cannot be that hash.
    const hashed = await keyPart('x'.repeat(161))
    expect(await keyPart(hashed)).not.toBe(hashed)
  })
})
