import { describe, expect, test } from 'vitest'
import { createLatencies, median, ratio, rounded } from '../../bench/measure/statistics.ts'

describe('median', () => {
  test('the middle one of an odd number, in whatever order, and the input stays as it is', () => {
    const values = [9, 1, 5]
    expect(median(values)).toBe(5)
    expect(values).toEqual([9, 1, 5])
  })

  test('the mean of the two middle ones of an even number', () => {
    expect(median([10, 1, 4, 100])).toBe(7)
  })

  test('one outlier does not move it', () => {
    expect(median([100, 101, 99, 100, 100_000])).toBe(100)
  })

  test('nothing has no median', () => {
    expect(() => median([])).toThrow(RangeError)
  })
})

describe('ratio', () => {
  test('says how many times the base', () => {
    expect(ratio(325, 130)).toBe(2.5)
  })

  test.each([0, -1, Number.NaN])('nothing is compared with %d', (base) => {
    expect(() => ratio(1, base)).toThrow(RangeError)
  })
})

test('rounding keeps numbers, not text', () => {
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

  test('two that are added, by way of JSON, tell what one would', () => {
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

  test('nothing recorded has no percentile', () => {
    expect(() => createLatencies().percentile(0.5)).toThrow(RangeError)
    expect(() => createLatencies().meanMs).toThrow(RangeError)
  })
})
