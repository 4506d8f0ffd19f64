import { describe, expect, test } from 'vitest'
import { createLatencies, median, ratio, rounded } from '../../bench/measure/statistics.ts'

describe('median', () => {
  test('is the middle value of an odd number, in any order, without changing the input', () => {
    const values = [9, 1, 5]
    expect(median(values)).toBe(5)
    expect(values).toEqual([9, 1, 5])
  })

  test('is the mean of the two middle values of an even number', () => {
    expect(median([10, 1, 4, 100])).toBe(7)
  })

  test('is not moved by one outlier', () => {
    expect(median([100, 101, 99, 100, 100_000])).toBe(100)
  })

  test('of no values is an error', () => {
    expect(() => median([])).toThrow(RangeError)
  })
})

describe('ratio', () => {
  test('is the value divided by the base', () => {
    expect(ratio(325, 130)).toBe(2.5)
  })

  test.each([0, -1, Number.NaN])('a base of %d is an error', (base) => {
    expect(() => ratio(1, base)).toThrow(RangeError)
  })
})

test('rounding returns numbers', () => {
  expect(rounded(1.005_4, 2)).toBe(1.01)
  expect(rounded(12, 2)).toBe(12)
})

describe('latencies', () => {
  test('percentiles are nearest ranks, to 10 us', () => {
    const histogram = createLatencies()
    for (let ms = 1; ms <= 100; ms++) histogram.record(ms)
    expect(histogram.count).toBe(100)
    expect(histogram.percentile(0)).toBe(1)
    expect(histogram.percentile(0.5)).toBe(50)
    expect(histogram.percentile(0.95)).toBe(95)
    expect(histogram.percentile(0.951)).toBe(96)
    expect(histogram.percentile(1)).toBe(100)
  })

  test('a latency is rounded to 10 us', () => {
    const histogram = createLatencies()
    histogram.record(1.2361)
    expect(histogram.percentile(0.5)).toBe(1.24)
  })

  test('the mean is that of the recorded values', () => {
    const histogram = createLatencies()
    for (const ms of [1.111, 2.222]) histogram.record(ms)
    expect(histogram.meanMs).toBeCloseTo(1.6665, 6)
  })

  test('values added from JSON are merged', () => {
    const [one, other, both] = [1, 2, 3].map(createLatencies)
    for (let ms = 1; ms <= 100; ms++) {
      ;(ms % 3 === 0 ? one : other)?.record(ms)
      both?.record(ms)
    }
    one?.add(JSON.parse(JSON.stringify(other?.values())))
    expect(one?.values().toSorted()).toEqual(both?.values().toSorted())
    expect(one?.count).toBe(100)
    expect(one?.percentile(0.9)).toBe(90)
  })

  test('without values there is no percentile', () => {
    expect(() => createLatencies().percentile(0.5)).toThrow(RangeError)
    expect(() => createLatencies().meanMs).toThrow(RangeError)
  })
})
