import { describe, expect, test } from 'vitest'
import { figuresOf } from '../../bench/figures.ts'
import { LAYERS, type Layer } from '../../bench/layers.ts'
import { parseStat } from '../../bench/process-times.ts'
import { layerTable, table } from '../../bench/report.ts'
import type { Round } from '../../bench/rounds.ts'

const layer = (id: string) => LAYERS.find((known) => known.id === id) as Layer

const round = (cpuMicros: number, requestsPerSecond: number, otherCores = 0): Round => ({
  requests: 1_000,
  requestsPerSecond,
  p50Ms: 1,
  p95Ms: 2,
  p99Ms: 3,
  cpuMicros,
  cpuUserMicros: cpuMicros,
  cpuSystemMicros: 0,
  redisCalls: 0,
  auditEvents: 0,
  otherCores,
})

describe('figures of a layer', () => {
  test('rounds are compared with the baseline next to them, so that a slow minute cancels out', () => {
    const [, full] = figuresOf(
      new Map([
        [layer('passthrough'), [round(100, 8_000), round(200, 4_000), round(110, 7_000)]],
        [layer('full'), [round(250, 4_000), round(500, 2_000), round(275, 3_500)]],
      ]),
    )
    expect(full?.toBaseline).toEqual({ cpu: 2.5, requestsPerSecond: 0.5, p50: 1 })
    expect(full).toMatchObject({ cpuMicros: 275, requestsPerSecond: 3_500 })
    expect(full?.rounds).toHaveLength(3)
  })

  test('without a baseline there are no ratios to tell', () => {
    expect(() => figuresOf(new Map([[layer('full'), [round(1, 1)]]]))).toThrow(RangeError)
  })
})

describe('the table', () => {
  const figures = (cpu: number, otherCores = 0) =>
    figuresOf(
      new Map([
        [layer('passthrough'), [round(100, 8_000)]],
        [layer('full'), [round(cpu, 4_000, otherCores)]],
      ]),
    )

  test('says whether the aim is met, of workerd only', () => {
    expect(layerTable('workerd', figures(260))).toContain('met (2.60)')
    expect(layerTable('workerd', figures(261))).toContain('missed (2.61)')
    expect(layerTable('wrangler', figures(261))).not.toContain('Aim')
  })

  test('says when others kept the machine busy', () => {
    expect(layerTable('workerd', figures(200, 0.9))).toContain('0.9 cores busy')
    expect(layerTable('workerd', figures(200))).not.toContain('cores busy')
  })

  test('columns stand in line', () => {
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
})

test('CPU times are found behind a name with brackets and spaces in it', () => {
  const stat = '42 (a (b) c) S 1 42 42 0 -1 4194304 900 0 3 0 150 25 7 8 20 0 6 0 100 1 2'
  expect(parseStat(stat, 100)).toEqual({ userMicros: 1_500_000, systemMicros: 250_000 })
})
