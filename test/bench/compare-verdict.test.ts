import { describe, expect, test } from 'vitest'
import { MIN_STARTS } from '../../bench/compare/options.ts'
import { compared, medianInterval, verdictOf } from '../../bench/compare/verdict.ts'
import { seededRandom } from '../../dev/fault-proxy/random.ts'

const PAIRS = 12
const THRESHOLD = 1.1
const SEEDS = 400

/** Returns ratios around `slowDown`, with random errors of up to `noise` in both measurements. */
function syntheticRatios(seed: number, slowDown: number, noise: number): readonly number[] {
  const random = seededRandom(seed)
  const error = () => 1 + noise * (2 * random() - 1)
  return Array.from({ length: PAIRS }, () => (slowDown * error()) / error())
}

/** Counts the verdicts over many seeds. */
function verdicts(slowDown: number, noise: number) {
  const counts = { ok: 0, regression: 0, noisy: 0 }
  for (let seed = 1; seed <= SEEDS; seed++)
    counts[verdictOf(medianInterval(syntheticRatios(seed, slowDown, noise)), THRESHOLD)]++
  return counts
}

describe('the interval of a median', () => {
  test.each([
    [6, 1, 6, 0.969],
    [9, 2, 8, 0.961],
    [12, 3, 10, 0.961],
    [20, 6, 15, 0.959],
  ])('of %i values is from rank %i to rank %i', (length, low, high, coverage) => {
    const values = Array.from({ length }, (_, index) => index + 1)
    const interval = medianInterval(values.toReversed())
    expect(interval).toMatchObject({ low, high, median: (length + 1) / 2 })
    expect(interval.coverage).toBeCloseTo(coverage, 3)
  })

  test('contains the true median with its confidence, also for a skewed distribution', () => {
    let held = 0
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = seededRandom(seed)
      const values = Array.from({ length: PAIRS }, () => -Math.log(1 - random()))
      const { low, high } = medianInterval(values)
      if (low <= Math.LN2 && Math.LN2 <= high) held++
    }
    expect(held / SEEDS).toBeGreaterThan(0.93)
    expect(held / SEEDS).toBeLessThan(1)
  })

  test('two outliers on each side move neither the median nor the interval far', () => {
    const calm = [0.98, 0.99, 0.99, 1, 1, 1, 1, 1.01, 1.01, 1.02]
    expect(medianInterval([...calm, 5, 9])).toMatchObject({ median: 1, low: 0.99, high: 1.02 })
  })

  test('too few values for an interval are an error', () => {
    const few = Array.from({ length: MIN_STARTS - 1 }, () => 1)
    expect(() => medianInterval(few)).toThrow(RangeError)
  })
})

describe('a verdict', () => {
  test.each([
    [{ median: 1.2, low: 1.15, high: 1.25 }, 'regression'],
    [{ median: 1.11, low: 1.01, high: 1.3 }, 'regression'],
    [{ median: 1.2, low: 0.99, high: 1.5 }, 'noisy'],
    [{ median: 1, low: 0.9, high: 1.11 }, 'noisy'],
    [{ median: 1.08, low: 1.06, high: 1.1 }, 'ok'],
    [{ median: 0.8, low: 0.6, high: 1.05 }, 'ok'],
  ])('of %j is %s', (interval, verdict) => {
    expect(verdictOf({ ...interval, coverage: 0.96 }, THRESHOLD)).toBe(verdict)
  })

  test('a slow-down of a fifth is always found with noise of 5 %', () => {
    expect(verdicts(1.2, 0.05)).toEqual({ ok: 0, regression: SEEDS, noisy: 0 })
  })

  test('equal revisions are ok and never a regression with that noise', () => {
    expect(verdicts(1, 0.05)).toEqual({ ok: SEEDS, regression: 0, noisy: 0 })
  })

  test('noise of 40 % gives the verdict noisy', () => {
    const equal = verdicts(1, 0.4)
    expect(equal.noisy).toBeGreaterThan(SEEDS * 0.7)
    expect(equal.regression).toBeLessThan(SEEDS * 0.05)
    expect(verdicts(1.2, 0.4).ok).toBeLessThan(SEEDS * 0.05)
  })
})

test('many pairs of few processes prove no more than those processes do', () => {
  const revision = { name: 'x', commit: undefined, directory: '.' }
  const slices = { requests: 1, requestsPerSecond: 1, cpuMicros: 1 }
  const start = (cpuRatio: number) => ({
    pairs: Array.from({ length: 9 }, () => ({
      ...{ base: slices, head: slices, cpuRatio, otherCores: 0 },
    })),
    ...{ redisCalls: { base: 1, head: 1 }, burnedRounds: 0, repeats: 1 },
  })
  const ratios = [1.3, 1.3, 1.2, 1.2, 1.2, 0.9]
  const { starts, pairs, cpu, verdict, repeats } = compared(
    { base: revision, head: revision },
    ratios.map(start),
    { thresholdPercent: 10 },
  )
  expect({ starts, pairs: pairs.length, repeats }).toEqual({
    starts: ratios,
    pairs: 54,
    repeats: 6,
  })
  expect({ cpu, verdict }).toMatchObject({
    cpu: { median: 1.2, low: 0.9, high: 1.3 },
    verdict: 'noisy',
  })
})
