import { describe, expect, test } from 'vitest'
import {
  addedBy,
  cpuFigures,
  FULL_STEP,
  layerPlots,
  layerTable,
  type PacedLayer,
  pacedFigures,
  pacedTable,
  STEPS,
} from '../../bench/layers/figures.ts'
import { type PacedSample, type Sample, summaryOf } from '../../bench/measure/rounds.ts'
import { noiseNotes, ratioOf } from '../../bench/measure/statistics.ts'
import { parseStat } from '../../bench/processes/proc.ts'
import { aimMet } from '../../bench/report/format.ts'
import type { Figure } from '../../bench/scenario.ts'
import { table } from '../../bench/text.ts'
import { sampleOf } from './sample.ts'

const round = (cpuMicros: number, requestsPerSecond: number, otherCores = 0) =>
  sampleOf({ cpuMicros, requestsPerSecond, otherCores, redisCalls: 0 })

/** Summaries of layers by their ids. */
const closed = (rounds: Readonly<Record<string, readonly Sample[]>>) =>
  Object.entries(rounds).map(([id, each]) => summaryOf({ id, title: id }, each))
const pacedLayers = (rounds: Readonly<Record<string, readonly PacedSample[]>>): PacedLayer[] =>
  Object.entries(rounds).map(([id, each]) => ({ id, title: id, rounds: each }))

const paced = (p50Ms: number, meanMs = p50Ms): PacedSample => ({
  requests: 100,
  meanMs,
  p50Ms,
  p95Ms: p50Ms * 2,
  p99Ms: p50Ms * 2,
  lateP50Ms: 0.1,
})

function valueIn(figures: readonly Figure[], id: string): number | undefined {
  return figures.find((figure) => figure.id === id)?.value
}

describe('figures of a layer', () => {
  test('each round is compared with the neighbouring baseline, so that noise cancels out', () => {
    const layers = closed({
      passthrough: [round(100, 8_000), round(200, 4_000), round(110, 7_000)],
      full: [round(250, 4_000), round(500, 2_000), round(275, 3_500)],
    })
    const [baseline, full] = layers
    const ratioTo = (key: 'cpuMicros' | 'requestsPerSecond' | 'p50Ms') =>
      ratioOf(full?.rounds ?? [], baseline?.rounds ?? [], key)
    expect([ratioTo('cpuMicros'), ratioTo('requestsPerSecond'), ratioTo('p50Ms')]).toEqual([
      2.5, 0.5, 1,
    ])
    expect(full).toMatchObject({ cpuMicros: 275, requestsPerSecond: 3_500 })
    expect(full?.rounds).toHaveLength(3)
  })

  test('without a baseline there are no ratios', () => {
    expect(() => layerTable(closed({ full: [round(1, 1)] }))).toThrow(RangeError)
  })
})

describe('time that a stage adds', () => {
  test('is the median of the differences of neighbouring rounds', () => {
    const layers = pacedLayers({
      passthrough: [paced(1), paced(9), paced(2)],
      full: [paced(1.5), paced(9.4), paced(2.6)],
    })
    expect(addedBy(FULL_STEP, layers, 'p50Ms')).toBe(0.5)
  })

  test('the steps lead from the baseline to the whole gateway, each on the one before', () => {
    expect(STEPS[0]?.over).toBe(FULL_STEP.over)
    expect(STEPS.at(-1)?.of).toBe(FULL_STEP.of)
    for (const [index, { over }] of STEPS.entries())
      if (index > 0) expect(over).toBe(STEPS[index - 1]?.of)
  })

  test('the added times of all steps are those of the full pipeline, and its budget is an aim', () => {
    const chain = ['passthrough', ...STEPS.map(({ of }) => of)]
    const layers = pacedLayers(
      Object.fromEntries(chain.map((id, index) => [id, [paced(1 + index / 4)]])),
    )
    const figures = pacedFigures(layers)
    expect(valueIn(figures, 'full-added-p50')).toBe(STEPS.length / 4)
    const steps = STEPS.map(({ id }) => valueIn(figures, `${id}-added-p50`) ?? Number.NaN)
    expect(steps.reduce((sum, value) => sum + value, 0)).toBe(STEPS.length / 4)
    expect(valueIn(figures, 'full-added-share')).toBe(STEPS.length * 25)
    const [p50, mean] = ['full-added-p50', 'full-added-mean'].map((id) =>
      figures.find((figure) => figure.id === id),
    )
    expect(p50 && aimMet(p50), '1.75 of 1.25 ms').toBe(false)
    expect(mean && aimMet(mean), '1.75 of 5 ms').toBe(true)
    expect(pacedTable(layers, 500).rows.at(-1)).toContain('175')
  })

  test('a step without one of its layers has no figure', () => {
    const layers = pacedLayers({
      passthrough: [paced(1)],
      full: [paced(2)],
    })
    expect(pacedFigures(layers).map(({ id }) => id)).toEqual([
      'full-added-p50',
      'full-added-mean',
      'full-added-share',
    ])
  })
})

describe('CPU', () => {
  const figures = (cpu: number, otherCores = 0) =>
    closed({
      passthrough: [round(100, 8_000)],
      full: [round(cpu, 4_000, otherCores)],
    })
  const ratioOf = (cpu: number, runtime: 'workerd' | 'wrangler') =>
    cpuFigures(runtime, figures(cpu)).find(({ id }) => id === 'full-cpu-ratio') as Figure

  test('the aim applies to workerd only, and an equal value meets it', () => {
    expect(aimMet(ratioOf(240, 'workerd'))).toBe(true)
    expect(aimMet(ratioOf(241, 'workerd'))).toBe(false)
    expect(aimMet(ratioOf(241, 'wrangler'))).toBeUndefined()
  })

  test('a busy machine is noted', () => {
    expect(noiseNotes(figures(200, 0.9)).join()).toContain('0.9 cores')
    expect(noiseNotes(figures(200))).toEqual([])
  })

  test('a negative step is drawn as zero', () => {
    const layers = closed({
      passthrough: [round(100, 8_000)],
      hygiene: [round(90, 8_000)],
    })
    const times = pacedLayers({
      passthrough: [paced(1)],
      hygiene: [paced(2)],
    })
    const [cpu, time] = layerPlots(layers, times)
    const [hygiene] = STEPS
    const pointsOf = (plot: typeof cpu) =>
      plot?.series.find(({ name }) => name === hygiene?.title)?.points
    expect(pointsOf(cpu)).toEqual([0])
    expect(pointsOf(time)).toEqual([1, 1])
  })

  test('each layer has a row', () => {
    expect(layerTable(figures(200)).rows.map(([title]) => title)).toEqual(['passthrough', 'full'])
  })
})

test('columns are aligned', () => {
  expect(
    table(
      ['name', 'n'],
      [
        ['a', '1'],
        ['long name', '100'],
      ],
    ),
  ).toBe(['name         n', '---------  ---', 'a            1', 'long name  100'].join('\n'))
})

test('CPU times are parsed after a name with brackets and spaces', () => {
  const stat = '42 (a (b) c) S 1 42 42 0 -1 4194304 900 0 3 0 150 25 7 8 20 0 6 0 100 1 2'
  expect(parseStat(stat, 100)).toEqual({ userMicros: 1_500_000, systemMicros: 250_000 })
})
