import { parse, v4, validate, version } from 'uuid'
import { expect, test } from 'vitest'
import { isoTime } from '../../src/audit/timeline.ts'
import { randomHex, recordId, uuidV4, uuidV7 } from '../../src/isolate/random-ids.ts'

const NOW_MS = Date.parse('2026-11-22T03:04:05.678Z')
const TIME_BYTES = 6

test('an id is a UUIDv7 of the current time, and ids are unique', () => {
  const ids = Array.from({ length: 5_000 }, () => uuidV7(NOW_MS))
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) {
    expect(validate(id) && version(id) === 7).toBe(true)
    const time = Buffer.from(parse(id).subarray(0, TIME_BYTES)).readUIntBE(0, TIME_BYTES)
    expect(time).toBe(NOW_MS)
  }
})

test('each of the 74 random bits of an id takes both values', () => {
  const seen = { zeros: 0n, ones: 0n }
  for (let i = 0; i < 500; i++) {
    const bits = BigInt(`0x${uuidV7(NOW_MS).replaceAll('-', '')}`)
    seen.ones |= bits
    seen.zeros |= ~bits
  }
  const changing = seen.ones & seen.zeros & ((1n << 80n) - 1n)
  // All bits except version and variant.
  expect(changing).toBe(((1n << 12n) - 1n) * (1n << 64n) + ((1n << 62n) - 1n))
})

test('ids of records are in order, and begin with the time', () => {
  const before = Date.now()
  const ids = Array.from({ length: 1_000 }, recordId)
  expect([...new Set(ids)].sort()).toEqual(ids)
  for (const id of ids) expect(validate(id) && version(id) === 7).toBe(true)
  const first = Number.parseInt((ids[0] ?? '').replace('-', '').slice(0, 12), 16)
  expect(first).toBeGreaterThanOrEqual(before)
})

test('a UUIDv4 has the bits of its bytes', () => {
  for (let i = 0; i < 200; i++) {
    const bytes = crypto.getRandomValues(new Uint8Array(16))
    expect(uuidV4(bytes)).toBe(v4({ random: bytes.slice() }))
  }
})

test('random hex never repeats, even across two blocks of random bytes', () => {
  const seen = Array.from({ length: 2_000 }, () => randomHex(16))
  expect(new Set(seen).size).toBe(seen.length)
  for (const text of seen) expect(text).toMatch(/^[0-9a-f]{32}$/)
})

test.each([0, 1, 999, 1_000, NOW_MS, NOW_MS + 1, NOW_MS - 700, NOW_MS + 86_400_000, -1, -1_001])(
  '%i is formatted like the platform formats it',
  (nowMs) => expect(isoTime(nowMs)).toBe(new Date(nowMs).toISOString()),
)
