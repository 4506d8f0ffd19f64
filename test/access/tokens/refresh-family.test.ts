import { describe, expect, test } from 'vitest'
import { type RefreshFamily, statusOf } from '../../../src/access/tokens/refresh-family.ts'
import { newSession } from './refreshing.ts'

const ROTATED_AT_MS = 1_800_000_000_000
const family: RefreshFamily = {
  session: newSession(),
  current: 'h2',
  previous: { hash: 'h1', rotatedAtMs: ROTATED_AT_MS },
  ended: false,
}
const isNew: RefreshFamily = { ...family, previous: undefined }
const hasEnded: RefreshFamily = { ...family, ended: true }

describe('the status of a refresh token in its family', () => {
  test.each([
    ['the current token', family, 'h2', 0, 'current'],
    ['the current token, long after', family, 'h2', 1_000_000, 'current'],
    ['the only token of a new family', isNew, 'h2', 0, 'current'],
    ['the previous token at once', family, 'h1', 0, 'previous'],
    ['the previous token at the end of the grace period', family, 'h1', 10_000, 'previous'],
    ['the previous token after the grace period', family, 'h1', 10_001, 'reused'],
    ['an older token', family, 'h0', 0, 'reused'],
    ['another token of a new family', isNew, 'h1', 0, 'reused'],
    ['the current token of an ended family', hasEnded, 'h2', 0, 'ended'],
    ['the previous token of an ended family', hasEnded, 'h1', 0, 'ended'],
    ['an older token of an ended family', hasEnded, 'h0', 0, 'ended'],
  ])('%s [S36, S37]', (_name, of, hash, afterMs, expected) => {
    const at = { nowMs: ROTATED_AT_MS + afterMs, graceMs: 10_000 }
    expect(statusOf(of, hash, at)).toBe(expected)
  })
})
