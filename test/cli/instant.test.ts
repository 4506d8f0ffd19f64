/** Times on the command line. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { instantAt } from '../../cli/arguments.ts'

const NOW_MS = Date.parse('2026-11-26T02:30:00Z')
beforeEach(() => void vi.stubEnv('TZ', 'America/New_York'))
afterEach(() => void vi.unstubAllEnvs())

test.each([
  ['now', '2026-11-26T02:30:00.000Z'],
  // In New York it is the evening before.
  ['today', '2026-11-25T05:00:00.000Z'],
  ['yesterday', '2026-11-24T05:00:00.000Z'],
  [' Yesterday ', '2026-11-24T05:00:00.000Z'],
  ['2026-11-26', '2026-11-26T05:00:00.000Z'],
  ['2026-07-01', '2026-07-01T04:00:00.000Z'],
  ['2026-11-26T10:00:00Z', '2026-11-26T10:00:00.000Z'],
  ['2026-11-26t10:00z', '2026-11-26T10:00:00.000Z'],
  ['2026-11-26T10:00:00.5+02:00', '2026-11-26T08:00:00.500Z'],
  ['2026-11-26T10:00:00-0500', '2026-11-26T15:00:00.000Z'],
  ['2026-11-26 10:00', '2026-11-26T15:00:00.000Z'],
  ['90s', '2026-11-26T02:28:30.000Z'],
  ['15m', '2026-11-26T02:15:00.000Z'],
  ['2h ago', '2026-11-26T00:30:00.000Z'],
  ['30d', '2026-10-27T02:30:00.000Z'],
  ['1w', '2026-11-19T02:30:00.000Z'],
])('%s is %s', (text, expected) => {
  expect(instantAt(text, NOW_MS)).toBe(expected)
})

test.each([
  '',
  'soon',
  '2026',
  '2026-11',
  '2026-13-01',
  '2026-02-30',
  '2026-11-26T25:00:00Z',
  '15',
  '-1h',
  '1y',
  '999999999w',
])('"%s" is no time', (text) => {
  expect(() => instantAt(text, NOW_MS)).toThrow('It must be a time')
})
