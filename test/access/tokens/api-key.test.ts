import { describe, expect, it } from 'vitest'
import { isApiKey, looksLikeApiKey, newApiKey } from '../../../src/access/tokens/api-key.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** CRC-32 by its definition, with a table, independent of the implementation. */
function crc32(text: string): number {
  const table = Array.from({ length: 256 }, (_, index) => {
    let entry = index
    for (let bit = 0; bit < 8; bit++) entry = entry & 1 ? (entry >>> 1) ^ 0xedb88320 : entry >>> 1
    return entry
  })
  let crc = -1
  for (const character of text)
    crc = (crc >>> 8) ^ (table[(crc ^ character.charCodeAt(0)) & 0xff] ?? 0)
  return ~crc >>> 0
}

describe('the form of API keys', () => {
  it('10,000 keys are unique, have one form, and use every character about equally often [S41]', () => {
    const keys = new Set(Array.from({ length: 10_000 }, () => newApiKey()))
    expect(keys.size).toBe(10_000)
    const counts = new Map<string, number>()
    for (const key of keys) {
      expect(key).toMatch(/^pk_[0-9A-Za-z]{49}$/)
      for (const character of key.slice(3, 46))
        counts.set(character, (counts.get(character) ?? 0) + 1)
    }
    // 430,000 characters: a share of 1/62 each, within five standard deviations.
    expect([...counts.keys()].sort().join('')).toBe([...ALPHABET].sort().join(''))
    for (const [character, count] of counts) {
      expect(count, character).toBeGreaterThan(6_935 - 415)
      expect(count, character).toBeLessThan(6_935 + 415)
    }
  })

  it('43 of 62 characters hold at least 256 bits, and bytes that would cause a bias are skipped [S41]', () => {
    expect(62 ** 43).toBeGreaterThan(2 ** 256)
    let calls = 0
    const key = newApiKey((count) => new Uint8Array(count).fill(calls++ === 0 ? 255 : 7))
    expect(key.slice(3, 46)).toBe('7'.repeat(43))
    expect(calls).toBe(2)
  })

  it('the last six characters are the CRC-32 of the preceding ones', () => {
    for (let count = 0; count < 100; count++) {
      const key = newApiKey()
      let crc = 0
      for (const character of key.slice(46)) crc = crc * 62 + ALPHABET.indexOf(character)
      expect(crc).toBe(crc32(key.slice(0, 46)))
    }
  })

  it('a key with any one character changed, swapped, removed or added is invalid', () => {
    const key = newApiKey()
    expect(isApiKey(key)).toBe(true)
    for (let at = 0; at < key.length; at++) {
      const other = key[at] === 'A' ? 'B' : 'A'
      const changed = key.slice(0, at) + other + key.slice(at + 1)
      expect(isApiKey(changed), changed).toBe(false)
    }
    for (const text of [key.slice(0, -1), `${key}0`, ` ${key}`, `${key}\n`, key.toUpperCase(), ''])
      expect(isApiKey(text), JSON.stringify(text)).toBe(false)
  })

  it('a key with a wrong checksum still has the form of a key, so that the error can name the checksum', () => {
    const key = newApiKey()
    const mistyped = `pk_${key[3] === 'x' ? 'y' : 'x'}${key.slice(4)}`
    expect([looksLikeApiKey(mistyped), isApiKey(mistyped)]).toEqual([true, false])
    expect(looksLikeApiKey(`pk_${'x'.repeat(48)}`)).toBe(false)
  })
})
