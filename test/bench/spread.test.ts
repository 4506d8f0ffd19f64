import { expect, test } from 'vitest'
import { ratioSpreadOf, spreadOf } from '../../bench/measure/statistics.ts'
import { valueText } from '../../bench/report/format.ts'

test.each([
  [[4], 4, [4, 4]],
  [[3, 1, 2], 2, [1.5, 2.5]],
  [[7, 1, 6, 2, 5, 3, 4], 4, [2.5, 5.5]],
  [[1, 2, 3, 100], 2.5, [1.5, 51.5]],
])('the spread of %j is %d, with quartiles %j', (values, median, quartiles) => {
  expect(spreadOf(values)).toEqual({ median, quartiles })
})

test('no values have no spread', () => {
  expect(() => spreadOf([])).toThrow(RangeError)
})

test('ratios are of neighbouring rounds, so that noise cancels out', () => {
  const rounds = (...values: readonly number[]) => values.map((cpu) => ({ cpu }))
  expect(ratioSpreadOf(rounds(2, 20, 6), rounds(1, 10, 2), 'cpu')).toEqual({
    median: 2,
    quartiles: [2, 2.5],
  })
})

test('a figure is shown with its quartiles', () => {
  expect(valueText({ value: 2.91, unit: 'ratio', quartiles: [2.8, 3.05] })).toBe(
    '2.91 (2.8 to 3.05)',
  )
  expect(valueText({ value: 2.91, unit: 'ms' })).toBe('2.91 ms')
})
