import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  type Answered,
  createExplanations,
  createLedger,
  type Expectation,
} from '../../bench/chaos/ledger.ts'
import { type AuditTimes, accountFor, withReasons } from '../../bench/soak/audit.ts'
import {
  breakerRecoveryMs,
  explainedBy,
  FAULT_NAMES,
  faultOf,
  planFaults,
} from '../../bench/soak/faults.ts'
import {
  allHold,
  createLimitWatch,
  type Evidence,
  invariantsOf,
} from '../../bench/soak/invariants.ts'
import { longestLife, slopeOf } from '../../bench/soak/memory.ts'
import { readOptions } from '../../bench/soak/options.ts'
import type { Pause } from '../../bench/soak/pauses.ts'
import { report, type SoakResult, writeResult } from '../../bench/soak/result.ts'
import { columnsOf, createSeries } from '../../bench/soak/series.ts'
import { attribute, createSlowest } from '../../bench/soak/slowest.ts'

const GOOD: Expectation = { kind: 'read', right: [200], mayReachOrigin: 'yes', subject: 'alice' }
const BAD: Expectation = { kind: 'revoked', right: [401], mayReachOrigin: 'no', subject: '' }

const answer = (status: number, code = '', more: object = {}) => ({
  status,
  code,
  requestId: crypto.randomUUID(),
  body: '',
  isCut: false,
  ...more,
})

/** Creates a ledger with its explanations. */
function ledgerWith() {
  const explanations = createExplanations(explainedBy)
  const ledger = createLedger(explanations)
  return {
    explanations,
    ledger,
    open: (expectation: Expectation, { method = 'GET', gateway = 0, sentMs = 1_000 } = {}) =>
      ledger.open({ expectation, method, gateway, sentMs }),
  }
}

describe('options', () => {
  test('defaults: ten minutes, every fault, 70 % of the measured peak', () => {
    expect(readOptions([])).toEqual({
      runtime: 'workerd',
      minutes: 10,
      rate: undefined,
      peakSeconds: 10,
      callers: 0,
      windowSeconds: 20,
      faults: FAULT_NAMES,
      seed: 1,
      out: undefined,
    })
    expect(readOptions(['--help'])).toBe('help')
    expect(readOptions(['--faults', 'redis-hang, origin-5xx'])).toMatchObject({
      faults: ['redis-hang', 'origin-5xx'],
    })
  })

  test.each([
    ['--minutes', 'x'],
    ['--minutes', '0'],
    ['--rate', '100000'],
    ['--faults', 'earthquake'],
    ['--unknown', '1'],
  ])('%s %s is refused', (...argv) => {
    expect(() => readOptions(argv)).toThrow()
  })
})

describe('the plan of faults', () => {
  const options = { seconds: 700, windowSeconds: 20, faults: FAULT_NAMES, seed: 4 }

  test('every fault occurs before any occurs again, each followed by a pause, none in the first window', () => {
    const plan = planFaults(options)
    expect(plan[0]?.startSeconds).toBe(20)
    expect(plan.length).toBe(34)
    const round = plan.slice(0, FAULT_NAMES.length).map(({ name }) => name)
    expect(new Set(round).size).toBe(FAULT_NAMES.length)
    for (const [index, { startSeconds, endSeconds }] of plan.entries()) {
      expect(endSeconds).toBeGreaterThan(startSeconds)
      expect(endSeconds).toBeLessThan(plan[index + 1]?.startSeconds ?? 700)
    }
  })

  test('the seed determines the plan', () => {
    expect(planFaults(options)).toEqual(planFaults(options))
    expect(planFaults({ ...options, seed: 5 })).not.toEqual(planFaults(options))
  })
})

describe('failures that a fault explains', () => {
  test('only its own codes, from its start to the end of its recovery', () => {
    const explanations = createExplanations(explainedBy)
    const window = explanations.begin('redis-hang', 10_000)
    const at = (fromMs: number, toMs: number) => ({ fromMs, toMs, gateway: 0 })
    const trouble = '503 dependency_unavailable'
    expect(explanations.explain(trouble, at(9_000, 9_900))).toBeUndefined()
    expect(explanations.explain(trouble, at(9_900, 10_100))).toBe(window)
    window.endMs = 20_000
    const lastMs = 20_000 + faultOf('redis-hang').recoveryMs(10_000)
    expect(explanations.explain(trouble, at(lastMs, lastMs + 1))).toBe(window)
    expect(explanations.explain(trouble, at(lastMs + 1, lastMs + 2))).toBeUndefined()
    for (const other of ['500', '502 origin_unreachable', '401 invalid_token', 'none', 'cut'])
      expect(explanations.explain(other, at(11_000, 12_000)), other).toBeUndefined()
  })

  test.each([
    [0, 2_000],
    [500, 3_000],
    [3_000, 5_000],
    [60_000, 6_000],
  ])(
    'after an outage of %i ms, a breaker may refuse requests for %i ms',
    (lastedMs, recoveryMs) => {
      expect(breakerRecoveryMs(lastedMs)).toBe(recoveryMs)
    },
  )

  test('the measurement of the peak explains no outage of Redis', () => {
    const explanations = createExplanations(explainedBy)
    explanations.begin('full-load', 10_000)
    const span = { fromMs: 10_000, toMs: 10_001, gateway: 0 }
    expect(explanations.explain('503 dependency_unavailable', span)).toBeUndefined()
    expect(explanations.explain('503 overloaded', span)).toBeDefined()
  })

  test('a killed gateway explains no failure of the other one', () => {
    const explanations = createExplanations(explainedBy)
    const window = explanations.begin('gateway-kill', 10_000, 1)
    const span = { fromMs: 10_000, toMs: 10_001 }
    expect(explanations.explain('none', { ...span, gateway: 1 })).toBe(window)
    expect(explanations.explain('none', { ...span, gateway: 0 })).toBeUndefined()
  })

  test('no fault explains a refusal, or an internal error', () => {
    for (const name of FAULT_NAMES)
      for (const trouble of faultOf(name).explains)
        expect(trouble).not.toMatch(/^4|internal_error|misconfigured/)
  })
})

describe('the ledger finds [R33]', () => {
  test('a bad request with a 2xx, or at the origin', () => {
    const { ledger, open } = ledgerWith()
    expect(ledger.settle(open(BAD), answer(200), 2_000)).toBe('wrong_accept')
    const silent = open(BAD)
    expect(ledger.settle(silent, answer(401, 'invalid_token'), 2_000)).toBe('right')
    ledger.arrive({ number: silent, subject: 'alice', method: 'GET' })
    expect(ledger.findings().counts.wrongAccepts).toBe(2)
    ledger.arrive({ number: 999, subject: 'alice', method: 'GET' })
    expect(ledger.findings().counts.wrongAccepts).toBe(3)
  })

  test('a wrong accept during a fault', () => {
    const { ledger, open, explanations } = ledgerWith()
    explanations.begin('redis-rubbish', 0)
    expect(ledger.settle(open(BAD), answer(200), 2_000)).toBe('wrong_accept')
    expect(ledger.settle(open(BAD), answer(503, 'dependency_unavailable'), 2_000)).toBe('explained')
  })

  test('a request that arrives with another subject', () => {
    const { ledger, open } = ledgerWith()
    ledger.arrive({ number: open(GOOD), subject: 'alice', method: 'GET' })
    expect(ledger.findings().counts.wrongAccepts).toBe(0)
    ledger.arrive({ number: open(GOOD), subject: 'bob', method: 'GET' })
    expect(ledger.findings().counts.wrongAccepts).toBe(1)
  })

  test.each([
    ['an error', answer(503, 'dependency_unavailable')],
    ['an internal error', answer(500, 'internal_error')],
    ['an incomplete body', answer(200, '', { isCut: true })],
    ['no answer', answer(0)],
  ])('%s without a fault', (_, given) => {
    const { ledger, open } = ledgerWith()
    expect(ledger.settle(open(GOOD), given, 2_000)).toBe('unexplained')
    expect(ledger.findings().counts.unexplained).toBe(1)
  })

  test.each([401, 403, 429])('a good request with %i, during any fault', (status) => {
    const { ledger, open, explanations } = ledgerWith()
    explanations.begin('redis-refuse', 0)
    expect(ledger.settle(open(GOOD), answer(status), 2_000)).toBe('wrong_refusal')
  })

  test('a POST that reaches the origin twice; a GET may be repeated by the runtime', () => {
    const { ledger, open } = ledgerWith()
    for (const method of ['GET', 'POST']) {
      const number = open(GOOD, { method })
      for (const _ of 'ab') ledger.arrive({ number: number, subject: 'alice', method: method })
    }
    expect(ledger.findings().counts.repeats).toBe(1)
  })

  test('requests without a response', () => {
    const { ledger, open } = ledgerWith()
    open(GOOD)
    expect(ledger.inFlight()).toBe(1)
  })

  test('a window with more requests than the limit', () => {
    const watch = createLimitWatch()
    for (let count = 0; count < 100; count++) watch.arrive('greedy', 65_000 + count * 500)
    // Admitted in the minute before, and delayed on the way to the origin.
    watch.arrive('greedy', 121_000)
    expect(watch.overruns()).toEqual([])
    watch.arrive('greedy', 119_999)
    expect(watch.overruns()).toEqual(['101: greedy in minute 1'])
  })
})

describe('the comparison with audit events [R33]', () => {
  const answered = (requestId: string, more: Partial<Answered> = {}): Answered => ({
    requestId,
    gateway: 0,
    answeredMs: 50_000,
    status: 200,
    code: '',
    ...more,
  })
  const row = (request_id: string, status = 200) => ({
    request_id,
    status,
    reason: 'ok',
    lost: null,
  })
  const lostRow = { request_id: 'x', status: 0, reason: 'audit_lost', lost: 2 }

  test('one event for each response: none is lost', () => {
    const account = accountFor([answered('a'), answered('b')], [row('b'), row('a')], [])
    expect(account).toMatchObject({ matched: 2, lost: 0, doubled: 0, different: 0 })
  })

  test('a missing event is lost and listed', () => {
    const account = accountFor([answered('a'), answered('b')], [row('a')], [])
    expect(account).toMatchObject({ matched: 1, lost: 1 })
    expect(account.lostExamples[0]).toContain('b')
  })

  test('two events for one response, or one with another status, are found', () => {
    const account = accountFor(
      [answered('a'), answered('b')],
      [row('a'), row('a'), row('b', 401)],
      [],
    )
    expect(account).toMatchObject({ matched: 0, doubled: 1, different: 1 })
  })

  test('a kill explains only the last seconds of its own gateway', () => {
    const deaths = [{ gateway: 0, timeMs: 51_000 }]
    const requests = [
      answered('late'),
      answered('early', { answeredMs: 40_000 }),
      answered('elsewhere', { gateway: 1 }),
      answered('after', { answeredMs: 60_000 }),
    ]
    expect(accountFor(requests, [], deaths)).toMatchObject({ diedWithGateway: 1, lost: 3 })
  })

  test('declared losses are explained, further ones are not', () => {
    const requests = ['a', 'b', 'c'].map((id) => answered(id))
    expect(accountFor(requests, [lostRow], [])).toMatchObject({ declaredLost: 2, lost: 1 })
  })

  test('an example has the reason of its audit event', () => {
    const requestId = crypto.randomUUID()
    const rows = [{ ...row(requestId, 503), reason: 'redis:timeout' }]
    const examples = [`read: 503 (${requestId})`, 'read: none (ECONNRESET)']
    expect(withReasons(examples, rows)).toEqual([`${examples[0]} redis:timeout`, examples[1]])
  })

  test('shed load has no event for each response', () => {
    const shed = answered('a', { status: 503, code: 'overloaded' })
    expect(accountFor([shed], [], [])).toMatchObject({ shed: 1, lost: 0 })
  })

  test('a declaration of shed load explains no other missing event', () => {
    const shed = ['a', 'b'].map((id) => answered(id, { status: 503, code: 'overloaded' }))
    const account = accountFor([...shed, answered('c')], [lostRow], [])
    expect(account).toMatchObject({ shed: 2, declaredLost: 0, lost: 1 })
  })
})

describe('memory', () => {
  const line = (perMinute: number, noise = 0) =>
    Array.from({ length: 120 }, (_, index) => ({
      seconds: index * 5,
      answered: index * 1_000,
      megabytes: 200 + (perMinute * index) / 12 + (index % 2 === 0 ? noise : -noise),
    }))

  test('a slope is found in noise, with its interval', () => {
    expect(slopeOf(line(3, 10))?.mbPerMinute).toBeCloseTo(3, 0)
    expect(slopeOf(line(0, 10))?.mbPerMinute).toBeCloseTo(0, 0)
    expect(slopeOf(line(3, 0))?.plusMinus).toBe(0)
    expect(slopeOf(line(3, 10))?.plusMinus).toBeGreaterThan(0.5)
    expect(slopeOf(line(3).slice(0, 8))).toBeUndefined()
  })

  test('growth of caches at the start of a run is not a leak', () => {
    const filled = line(0).map((sample, index) =>
      index < 30 ? { ...sample, megabytes: 100 + index } : sample,
    )
    expect(slopeOf(filled)?.mbPerMinute).toBe(0)
  })

  test('the line starts when the process is warm, after a number of requests', () => {
    const slow = line(0).map((sample, index) =>
      index < 80 ? { ...sample, megabytes: 100 + 2 * index } : { ...sample, answered: 90_000 },
    )
    const fewer = slow.map((sample) => ({ ...sample, answered: sample.answered / 2 }))
    expect(slopeOf(fewer)).toMatchObject({ isWarm: true, mbPerMinute: 0 })
    const few = slow.map((sample) => ({ ...sample, answered: sample.answered / 9 }))
    expect(slopeOf(few)).toMatchObject({ isWarm: false })
  })

  test('a restart begins a new line', () => {
    const life = longestLife([...line(0).slice(0, 5), undefined, ...line(0).slice(6, 30)])
    expect(life.length).toBe(24)
  })
})

const SOUND: Evidence = {
  requests: 10,
  unsettled: 0,
  findings: createLedger(createExplanations(explainedBy)).findings(),
  overruns: [],
  audit: { ...accountFor([], [], []), answered: 10, matched: 10 },
  surprises: 0,
  slopes: [
    undefined,
    slopeOf(
      Array.from({ length: 200 }, (_, i) => ({ seconds: i * 5, megabytes: 9, answered: i * 500 })),
    ),
  ],
}

describe('the invariants', () => {
  test('hold for a correct run; a short run does not judge memory', () => {
    expect(allHold(invariantsOf(SOUND))).toBe(true)
  })

  const counts = SOUND.findings.counts
  test.each<[string, Partial<Evidence>]>([
    ['nothing answered', { audit: { ...SOUND.audit, answered: 0 } }],
    ...(['wrongAccepts', 'unexplained', 'wrongRefusals', 'repeats'] as const).map(
      (what): [string, Partial<Evidence>] => [
        what,
        { findings: { ...SOUND.findings, counts: { ...counts, [what]: 1 } } },
      ],
    ),
    ['a limit exceeded', { overruns: ['101: greedy'] }],
    ['a request without an end', { unsettled: 1 }],
    ['a lost event', { audit: { ...SOUND.audit, lost: 1 } }],
    ['an event twice', { audit: { ...SOUND.audit, doubled: 1 } }],
    ['an event that differs', { audit: { ...SOUND.audit, different: 1 } }],
    ['a gateway that ended', { surprises: 1 }],
    [
      'a leak',
      { slopes: [{ mbPerMinute: 9, plusMinus: 2, samples: 99, minutes: 8, isWarm: true }] },
    ],
  ])('are broken by %s', (_, broken) => {
    expect(allHold(invariantsOf({ ...SOUND, ...broken }))).toBe(false)
  })
})

test('growth before the warm-up is not judged', () => {
  const steep = { mbPerMinute: 60, plusMinus: 3, samples: 99, minutes: 8, isWarm: false }
  const [memory] = invariantsOf({ ...SOUND, slopes: [steep] }).slice(-1)
  expect(memory).toMatchObject({ value: '60 +- 3', holds: undefined })
})

/** 1,000 requests of 10 ms in gateway 1. The last one waits for it, and its connection to the origin, for longer. */
const attributed = (() => {
  const slowest = createSlowest()
  const times = new Map<string, AuditTimes>()
  slowest.record({ requestId: 'discarded', gateway: 0, dueMs: 0, sentMs: 0, answeredMs: 900 })
  slowest.begin()
  for (let n = 1; n <= 1_000; n++) {
    const [requestId, dueMs, isLast] = [`${n}`, 10_000 + n, n === 1_000]
    const sentMs = dueMs + (isLast ? 5 : 1)
    const endMs = sentMs + (isLast ? 70 : 8)
    times.set(requestId, { endMs, durationsMs: { admit: 1, proxy: isLast ? 20 : 2 } })
    slowest.record({ requestId, gateway: 1, dueMs, sentMs, answeredMs: endMs + 1 })
  }
  const late: Pause = ['late', 11_010, 40, 30]
  const paused = { load: [], gateways: [[], [late, ['collection', 11_010, 8, 8]]] } as const
  return attribute(slowest.slowest(), times, paused, 10_000)
})()

describe('the slowest requests', () => {
  test('have their time by parts that follow each other, and what their gateway did meanwhile', () => {
    const [slowest, more] = attributed
    expect(slowest).toMatchObject({ share: 0.001, requests: 1, leastMs: 76, seconds: [[1, 1]] })
    expect(slowest?.parts).toEqual({
      'late at the load': 5,
      'before the first stage': 49,
      'stage admit': 1,
      'stage proxy': 20,
      'after the last stage': 1,
    })
    expect(slowest?.longest).toEqual({ 'before the first stage': 1 })
    expect(slowest?.meanwhile).toMatchObject({
      'gateway computes': 22,
      'gateway collects garbage': 8,
      'gateway waits for a core': 10,
      'load waits for a core': 0,
    })
    expect(more).toMatchObject({ requests: 10, leastMs: 10 })
  })

  test('are those that a long run had, though it keeps no others', () => {
    const slowest = createSlowest()
    for (let n = 0; n < 50_000; n++) {
      const lengthMs = (n * 7_919) % 50_000
      slowest.record({ requestId: '', gateway: 0, dueMs: 0, sentMs: 0, answeredMs: lengthMs })
    }
    const { traces, counts } = slowest.slowest()
    expect(counts).toEqual([50, 500])
    expect(traces.slice(0, 500).map(({ answeredMs }) => answeredMs)).toEqual(
      Array.from({ length: 500 }, (_, n) => 49_999 - n),
    )
  })
})

describe('results', () => {
  const series = createSeries()
  series.begin(0)
  for (let ms = 0; ms < 90_000; ms += 100)
    series.record({
      nowMs: ms,
      latencyMs: ms % 1_000,
      isTroubled: ms < 45_000,
      verdict: 'right',
      status: ms % 500 === 0 ? 503 : 200,
    })
  const result = {
    benchmark: 'soak',
    date: '2026-01-02T03:04:05Z',
    command: 'npm run soak',
    commit: { id: 'abc', changed: false },
    options: { ...(readOptions([]) as SoakResult['options']), minutes: 1.5 },
    load: { peakPerSecond: 20, offeredPerSecond: 10, requests: 900 },
    invariants: invariantsOf(SOUND),
    minutes: series.minutes(),
    faults: [
      { name: 'redis-hang', startSeconds: 10, endSeconds: 20, troubles: 5, recoverySeconds: 1.5 },
      { name: 'origin-5xx', startSeconds: 40, endSeconds: 52, troubles: 0, recoverySeconds: null },
    ],
    audit: SOUND.audit,
    memory: {
      gateways: [
        {
          heap: {
            slope: { mbPerMinute: 0.1, plusMinus: 0.2, samples: 12, minutes: 2, isWarm: true },
            samples: [
              [5, 20, 1],
              [10, null, 2],
              [15, 21, 3],
            ],
          },
          resident: {
            slope: undefined,
            samples: [
              [5, 200, 1],
              [10, null, 2],
              [15, 210, 3],
            ],
          },
        },
      ],
    },
    slowest: attributed.slice(0, 1),
    answers: { read: { '200': 3, '503 dependency_unavailable': 1 } },
    series: columnsOf(series.seconds()),
  } satisfies Partial<SoakResult>

  test('figures by second and minute, and without faults', () => {
    expect(result.series.answers.slice(0, 3)).toEqual([10, 10, 10])
    expect([result.series.ok[0], result.series.failed[0]]).toEqual([8, 2])
    expect(result.series.p50Ms[0]).toBe(400)
    expect(result.minutes.map(({ answers }) => answers)).toEqual([600, 300])
    expect(result.minutes.map(({ quietAnswers }) => quietAnswers)).toEqual([150, 300])
  })

  test('the JSON file parses to the same value', () => {
    const folder = mkdtempSync(join(tmpdir(), 'soak-test-'))
    try {
      const file = join(folder, 'soak.json')
      writeResult(file, result)
      const json = readFileSync(file, 'utf8')
      expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(result)))
      expect(json.split('\n').length).toBeLessThan(250)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('memory of the isolate, which is judged, and of its process', () => {
    expect(report(result)).toMatch(/^gateway 1: the isolate's heap +20 +21 +0\.1 \+- 0\.2 +2$/m)
    expect(report(result)).toMatch(/^gateway 1: resident in its process +200 +210 +- +-$/m)
    const judged = invariantsOf(SOUND).filter(({ what }) => what.includes('MB/min'))
    expect(judged.map(({ what }) => what)).toEqual([
      'heap of gateway 1, MB/min',
      'heap of gateway 2, MB/min',
    ])
  })

  test('the parts of the slowest requests', () => {
    const text = report(result)
    expect(text).toMatch(/^slowest 0\.1 %, 1 from 76 ms +mean ms +longest part of$/m)
    expect(text).toMatch(/^before the first stage +49\.0 +1$/m)
    expect(text).toMatch(/^meanwhile, gateway waits for a core +10\.0$/m)
  })

  test('tables with the broken invariants and examples', () => {
    expect(report(result)).not.toContain('BROKEN')
    const { findings } = SOUND
    const broken = invariantsOf({
      ...SOUND,
      findings: {
        ...findings,
        wrongAccepts: ['revoked: 200'],
        counts: { ...findings.counts, wrongAccepts: 1 },
      },
    })
    const text = report({ ...result, invariants: broken })
    expect(text).toMatch(/^wrong accepts +1 +0 +BROKEN$/m)
    expect(text).toContain('wrong accepts, for example:\n  revoked: 200')
  })
})
