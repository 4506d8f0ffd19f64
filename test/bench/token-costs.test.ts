import { describe, expect, test } from 'vitest'
import { type Sample, summaryOf } from '../../bench/measure/rounds.ts'
import type { Case } from '../../bench/tokens/cases.ts'
import { createIssuedTokens, MANY_TOKENS } from '../../bench/tokens/cases.ts'
import {
  type CaseFigures,
  caseFigures,
  caseNotes,
  caseTable,
  operationTable,
} from '../../bench/tokens/figures.ts'
import {
  type Allocations,
  bytesEach,
  type OperationFigures,
  roundOf,
} from '../../bench/tokens/measure-operations.ts'
import { measureNative } from '../../bench/tokens/native.ts'
import { ALGORITHMS, forged, OPERATIONS } from '../../bench/tokens/operations.ts'
import { cachedBytes, DEFAULT_CACHED_TOKEN_BYTES } from '../../src/access/tokens/verifier.ts'

/** Length of the tokens that the benchmark issues to its callers. */
const ORDINARY_CHARACTERS = 480

describe('the time of an operation', () => {
  const raw = {
    size: 100,
    batches: 4,
    batchMicros: 42_000,
    emptyMicros: 500,
    cpu: { userMicros: 30_000, systemMicros: 20_000 },
  }

  test('is the time of the batches without empty batches, per operation', () => {
    expect(roundOf(raw)).toEqual({
      operations: 400,
      micros: 100,
      cpuMicros: 125,
      perSecond: 10_000,
    })
  })

  test('of zero is an error', () => {
    expect(() => roundOf({ ...raw, batchMicros: 2_000 })).toThrow(RangeError)
  })
})

describe('the heap of an operation', () => {
  test('is the allocation of a batch without an empty batch, per operation', () => {
    expect(bytesEach(780_000, 30_000, 100)).toBe(7_500)
    expect(bytesEach(29_000, 30_000, 100)).toBe(0)
  })
})

describe('the table of operations', () => {
  const allocations = Object.fromEntries(OPERATIONS.map(({ id }) => [id, 7_700])) as Allocations
  const figures: OperationFigures[] = [
    {
      id: 'issue-RS256',
      title: 'issue RS256 (2048)',
      operations: 400,
      micros: 500,
      cpuMicros: 510,
      perSecond: 2_000,
      rounds: [],
    },
  ]

  test('the time in Node is a multiple of ours, and missing for an operation without one', () => {
    expect(operationTable(figures, allocations, { 'issue-RS256': 1_250.04 }).rows).toEqual([
      ['issue RS256 (2048)', '500', '510', '2,000', '7,700', '1250', '2.50'],
    ])
    expect(operationTable(figures, allocations, {}).rows[0]?.slice(-2)).toEqual(['', ''])
  })
})

describe('the table of cases', () => {
  const round = (requestsPerSecond: number, cpuMicros: number, loadCores = 0.3): Sample => ({
    requests: 1_000,
    shed: 0,
    givenUp: 0,
    requestsPerSecond,
    meanMs: 2,
    p50Ms: 2,
    p95Ms: 3,
    p99Ms: 4,
    cpuMicros,
    cpuUserMicros: cpuMicros,
    cpuSystemMicros: 0,
    redisCpuMicros: 0,
    redisCalls: 1,
    auditEvents: 0,
    gatewayCores: 0.9,
    redisCores: 0.4,
    loadCores,
    otherCores: 0,
  })
  const figuresOf = (each: typeof issuing, rounds: readonly Sample[]): CaseFigures => ({
    ...summaryOf(each, rounds),
    requiredPerSecond: each.requiredPerSecond,
  })
  const issuing: Pick<Case, 'id' | 'title' | 'requiredPerSecond'> = {
    id: 'issue-jwt',
    title: 'issue ES256',
    requiredPerSecond: 1_000,
  }

  test('figures are medians of the rounds with their spread, and CPU is per thousand', () => {
    const figures = figuresOf(issuing, [round(900, 800), round(1_200, 500), round(1_000, 650)])
    expect(figures).toMatchObject({
      requestsPerSecond: 1_000,
      cpuMicros: 650,
    })
    expect(figures.rounds).toHaveLength(3)
    expect(figures.spread.cpuMicros).toEqual([500, 800])
    expect(caseTable([figures]).rows[0]).toContain('0.650')
    expect(() => figuresOf(issuing, [])).toThrow(RangeError)
  })

  test('a required rate is an aim, and a load at its limit is reported', () => {
    const [rate] = caseFigures(figuresOf(issuing, [round(999, 500)]))
    expect(rate).toMatchObject({ value: 999, aim: { at: 'least', value: 1_000 } })
    const textOf = (each: Sample) => caseNotes([figuresOf(issuing, [each])]).join()
    expect(textOf(round(999, 500))).toBe('')
    expect(textOf(round(999, 500, 0.95))).toContain('issue ES256: the load was at its limit.')
  })

  test('a case without a required rate has no aim', () => {
    const free = { ...issuing, requiredPerSecond: undefined }
    const [rate] = caseFigures(figuresOf(free, [round(10, 500)]))
    expect(rate?.aim).toBeUndefined()
  })
})

test('the number of cached tokens is about the capacity of a cache', () => {
  const bytes = MANY_TOKENS * cachedBytes(ORDINARY_CHARACTERS)
  expect(bytes).toBeLessThanOrEqual(DEFAULT_CACHED_TOKEN_BYTES)
  expect(bytes).toBeGreaterThan(0.8 * DEFAULT_CACHED_TOKEN_BYTES)
})

describe('answers of a token endpoint', () => {
  const token = 'd4f2c1de-8c0b-4a3e-9f55-0c1d2e3f4a5b'
  const bodyOf = (members: object) =>
    JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 900, ...members })

  test('a new token in a complete response is right, and the same token again is not', () => {
    const issued = createIssuedTokens('opaque')
    expect(issued.take(bodyOf({}))).toBe(true)
    expect(issued.take(bodyOf({}))).toBe(false)
    expect(new Set(issued.samples())).toEqual(new Set([token]))
    issued.clear()
    expect(() => issued.samples()).toThrow('no token')
  })

  test.each([
    ['no JSON', '<html>'],
    ['nothing', 'null'],
    ['another format', bodyOf({ access_token: 'a.b.c' })],
    ['another type', bodyOf({ token_type: 'DPoP' })],
    ['no life', bodyOf({ expires_in: 0 })],
    ['an error', '{"error":"invalid_client"}'],
  ])('%s is wrong', (_what, body) => {
    expect(createIssuedTokens('opaque').take(body)).toBe(false)
  })

  test('a forged credential differs in one character', () => {
    const other = forged(token)
    expect([...token].filter((character, at) => character !== other[at])).toHaveLength(1)
  })
})

test('Node issues and verifies with every algorithm', () => {
  const times = measureNative(0.01)
  expect(Object.keys(times).sort()).toEqual(
    ['uuid', ...ALGORITHMS.flatMap((name) => [`issue-${name}`, `verify-${name}`])].sort(),
  )
  for (const micros of Object.values(times)) expect(micros).toBeGreaterThan(0)
})
