import { describe, expect, test } from 'vitest'
import { keyPart } from '../../../src/redis/key-part.ts'

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

describe('key parts [R18]', () => {
  test('are bounded, without separators, patterns, braces or control characters', async () => {
    for (const text of hostile) {
      const part = await keyPart(text)
      expect(part.length).toBeLessThanOrEqual(160)
      expect(part).toMatch(/^~?[A-Za-z0-9_.%-]*$/)
    }
  })

  test('keep their spelling, because counters and bans are stored under them', async () => {
    // The part is not a promise, so that a plain part costs no turn of the event loop.
    for (const [text, part] of [
      ['alice', 'alice'],
      ["it's (a) test!", 'it%27s%20%28a%29%20test%21'],
      ['a:b*~/é', 'a%3Ab%2A%7E%2F%C3%A9'],
      ['x'.repeat(160), 'x'.repeat(160)],
      [`x${':'.repeat(53)}`, `x${'%3A'.repeat(53)}`],
    ] as const)
      expect(keyPart(text)).toBe(part)
    for (const [text, part] of [
      ['x'.repeat(161), '~hCU2ehQyJN1uQn0lajmkN_8mAfQu2aVuzovS1iEQqV0'],
      [':'.repeat(54), '~aXA6qDEvvyXl7cgowwAyWHW-5EIGNGMtTswpWvOjBI4'],
      ['\ud800', '~jAxZ3Q0nWq3NRipf4S6zUsvf6vlh6uT4WkZgUh330vU'],
    ] as const)
      expect(await keyPart(text)).toBe(part)
  })

  test('never collide', async () => {
    const parts = await Promise.all(hostile.map(keyPart))
    expect(new Set(parts).size).toBe(hostile.length)
    // A text that looks like the hash of another text is escaped, so it cannot collide with that
    // hash.
    const hashed = await keyPart('x'.repeat(161))
    expect(await keyPart(hashed)).not.toBe(hashed)
  })
})
