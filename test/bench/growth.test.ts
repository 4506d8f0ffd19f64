import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { streams } from '../../bench/growth/streams.ts'
import { type Grown, growthFigures, growthTable, perDecade } from '../../bench/growth/table.ts'
import { orderId, TUPLES_OF_ORGANISATION, tuplesOf } from '../../bench/growth/tuples.ts'
import { summaryOf } from '../../bench/measure/rounds.ts'
import { compileModel } from '../../src/access/relations/compile-model.ts'
import { mistakeOfTuple } from '../../src/access/relations/permitted.ts'
import { decide } from '../access/relations/oracle.ts'
import { ROOT } from '../harness/process.ts'
import { sampleOf } from './sample.ts'

const model = compileModel(JSON.parse(readFileSync(join(ROOT, 'portcullis.model.json'), 'utf8')))

describe('the factor per decade', () => {
  const grown = (size: number, ...cpu: readonly number[]): Grown => ({
    size,
    residentMb: 100,
    summary: summaryOf(
      { id: `${size}`, title: `${size}` },
      cpu.map((cpuMicros) => sampleOf({ cpuMicros, requestsPerSecond: 1_000_000 / cpuMicros })),
    ),
  })
  const table = [grown(10, 100, 200), grown(100, 100, 200), grown(1_000, 400, 800)]

  test('is the same for each tenfold size', () => {
    expect(perDecade(4, 10, 1_000)).toBe(2)
    expect(perDecade(4, 10, 100)).toBe(4)
    expect(perDecade(1.5, 1, 8)).toBe(1.567)
  })

  test('of neighbouring rounds is in each row, and of the whole range a figure', () => {
    expect(growthTable(streams, table).rows.map((row) => row.slice(-2))).toEqual([
      ['', ''],
      ['1.00', '1.00'],
      ['4.00', '0.25'],
    ])
    expect(growthFigures(streams, table).map(({ id, value }) => [id, value])).toEqual([
      ['streams-cpu-ratio', 4],
      ['streams-cpu-per-decade', 2],
      ['streams-rps-per-decade', 0.5],
    ])
    expect(growthFigures(streams, table.slice(0, 1))).toEqual([])
  })
})

test('more streams than descriptors are not measured, and the reason says so', () => {
  expect(streams.obstacle?.(10)).toBeUndefined()
  expect(streams.obstacle?.(1_000_000_000)).toMatch(/^needs \d+ descriptors, of which \d+ are/)
})

describe('the tuples of an organisation', () => {
  const tuples = [...tuplesOf(3)]

  test('have the stated number, are distinct, and fit the model', () => {
    expect(tuples).toHaveLength(TUPLES_OF_ORGANISATION)
    expect(new Set(tuples.map((tuple) => JSON.stringify(tuple))).size).toBe(tuples.length)
    for (const tuple of tuples) expect(mistakeOfTuple(model, tuple)).toBeUndefined()
  })

  test.each([
    ['allowed', 3],
    ['denied', 4],
  ] as const)('the model decides %s for caller %d', (outcome, caller) => {
    for (const order of [0, 17, 35]) {
      const { decision } = decide(model, tuples, {
        tenant: null,
        object: `order:${orderId(3, order)}`,
        relation: 'viewer',
        subject: `user:caller-${caller}`,
        contextualTuples: [],
      })
      expect(decision.outcome).toBe(outcome)
    }
  })
})
