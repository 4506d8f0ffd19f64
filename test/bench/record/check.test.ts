/** The checker of recorded runs finds every violation, and no others. */
import { describe, expect, test } from 'vitest'
import type { HistoryEvent } from '../../../bench/chaos/history.ts'
import { check, violationsOf } from '../../../bench/record/check.ts'
import {
  ANSWERED_MS,
  fault,
  many,
  refreshed,
  refused,
  request,
  revocation,
  TERMS,
} from './histories.ts'

const verdictOf = (...events: readonly (readonly HistoryEvent[])[]) => check(events.flat(), TERMS)
const worstOf = (...events: readonly (readonly HistoryEvent[])[]) => {
  const { findings } = verdictOf(...events).windows
  return findings.map(({ limit, certain, possible }) => ({ limit, certain, possible }))
}

describe('the check of windows [R16]', () => {
  /** The limit, at the end of each of five windows. */
  const good = many(50, (index) => request(Math.floor(index / 10) * 1_010 + (index % 10)))

  test('accepts the limit in each window', () => {
    const verdict = verdictOf(good)
    expect(violationsOf(verdict)).toEqual([])
    expect(verdict).toMatchObject({ requests: 50, admitted: 50 })
    expect(worstOf(good)).toEqual([{ limit: 'strict', certain: 10, possible: 10 }])
  })

  test('finds one admission too many at any time', () => {
    for (const atMs of [0, 9, 500, 995, 2_020, 4_500]) {
      const verdict = verdictOf(good, request(atMs))
      expect(verdict.windows.violations, String(atMs)).toEqual([
        'strict of alice: 11 of 10 in one window',
      ])
    }
  })

  test('finds one across a boundary, although each fixed window is within its limit', () => {
    const late = many(10, (index) => request(980 + index))
    const early = many(10, (index) => request(1_005 + index))
    expect(worstOf(late, early)[0]).toMatchObject({ certain: 20 })
  })

  test('finds one without a 200 that reached the origin', () => {
    const silent = request(50, { status: 0, completeMs: 9_000, arriveMs: 60 })
    expect(verdictOf(good, silent).windows.violations).toHaveLength(1)
    expect(verdictOf(good, refused(50, 503)).windows.violations).toEqual([])
    expect(verdictOf(good, refused(50, 429)).windows.violations).toEqual([])
  })

  test('counts certain admissions, and reports possible ones', () => {
    const ten = many(10, () => request(0))
    // Admitted before its arrival, which is a window later than the others.
    const slow = request(0, { arriveMs: 1_001, completeMs: 1_100 })
    expect(worstOf(ten, slow)).toEqual([{ limit: 'strict', certain: 10, possible: 11 }])
    // The arrival is more exact than the response.
    const noticed = request(0, { arriveMs: 999, completeMs: 1_100 })
    expect(worstOf(ten, noticed)).toEqual([{ limit: 'strict', certain: 11, possible: 11 }])
  })

  test('treats windows as half open', () => {
    const at = (ms: number) =>
      many(10, () => request(ms, { arriveMs: ms, completeMs: ms + ANSWERED_MS }))
    expect(worstOf(at(0), at(1_000))).toEqual([{ limit: 'strict', certain: 10, possible: 10 }])
    expect(worstOf(at(0), at(999))[0]).toMatchObject({ certain: 20 })
  })

  test('separates subjects and limits, and adds up routes that share a limit', () => {
    const bob = many(10, (index) => request(index, { subject: 'bob' }))
    const leased = many(10, (index) => request(index, { route: 'leased' }))
    expect(verdictOf(good, bob, leased).windows.violations).toEqual([])
    const both = request(5, { route: 'both' })
    expect(verdictOf(good, both).windows.violations).toHaveLength(1)
    expect(verdictOf(leased, both).windows.violations).toEqual([
      'leased of alice: 11 of 10 in one window',
    ])
    const free = many(100, () => request(0, { route: 'free' }))
    expect(verdictOf(free).windows).toEqual({ findings: [], violations: [] })
  })

  test('allows twice the limit and the leased units around a loss of all data, once', () => {
    const loss = [{ kind: 'loss', fromMs: 100, untilMs: 200 }] as const
    const old = many(10, (index) => request(index, { route: 'leased' }))
    const fresh = (count: number, atMs: number) =>
      many(count, (index) => request(atMs + index / 10, { route: 'leased' }))
    const around = verdictOf(old, fresh(18, 300), loss)
    expect(around.windows).toMatchObject({ violations: [], findings: [{ aroundLoss: 28 }] })
    expect(verdictOf(old, fresh(19, 300), loss).windows.violations).toEqual([
      'leased of alice: 29 of 28 around a loss',
    ])
    // After a window, a lease and a call, the limit applies again.
    expect(verdictOf(old, fresh(11, 1_901), loss).windows.violations).toHaveLength(1)
    // It also applies before the loss.
    expect(verdictOf(old, request(20, { route: 'leased' }), loss).windows.violations).toEqual([
      'leased of alice: 11 of 10 in one window',
    ])
  })
})

describe('the check of revocations', () => {
  const use = (invokeMs: number, process = 0) => request(invokeMs, { route: 'free', process })
  const refusal = (invokeMs: number, process = 0) =>
    refused(invokeMs, 401, { route: 'free', process })
  const revoked = [revocation(90, 100)]

  test('accepts admissions within the bound, at any process', () => {
    const verdict = verdictOf(revoked, use(0), use(95), use(120), use(599.999, 1), refusal(600))
    expect(violationsOf(verdict)).toEqual([])
    expect(verdict.revocations.total).toEqual({
      revoked: 1,
      judged: 1,
      late: 0,
      within: 2,
      latestMs: expect.closeTo(499.999),
    })
    expect(verdict.revocations.byProcess[1]).toMatchObject({ within: 1, judged: 0 })
  })

  test('finds an admission that was sent just after the bound', () => {
    const { revocations } = verdictOf(revoked, use(600, 1))
    expect(revocations.total).toMatchObject({ judged: 1, late: 1, latestMs: 500 })
    expect(revocations.violations).toHaveLength(1)
    expect(revocations.violations[0]).toContain('at process 1 was admitted 500.0 ms after')
  })

  test('finds one without a 200 that reached the origin', () => {
    const silent = request(700, { route: 'free', status: 0, arriveMs: 900 })
    expect(verdictOf(revoked, silent).revocations.total.late).toBe(1)
  })

  test('does not judge a revocation without a response, or another token', () => {
    const unanswered = [revocation(90, 100, { status: 503 })]
    expect(verdictOf(unanswered, use(900)).revocations).toMatchObject({
      calls: 1,
      unanswered: 1,
      revoked: 0,
      violations: [],
    })
    const other = request(900, { route: 'free', token: 'b' })
    expect(verdictOf(revoked, other).revocations.violations).toEqual([])
    // A repeated revocation counts from its response.
    const again = [revocation(300, 400)]
    const verdict = verdictOf(unanswered, again, use(899), use(900))
    expect(verdict.revocations.total).toMatchObject({ within: 1, late: 1 })
  })

  test('skips only revocations that Redis may have lost', () => {
    const loss = [{ kind: 'loss', fromMs: 800, untilMs: 1_000 }] as const
    const late = verdictOf(revoked, loss, use(700))
    expect(late.revocations.total.late).toBe(1)
    const forgotten = verdictOf(revoked, loss, use(797), use(1_500))
    expect(forgotten.revocations).toMatchObject({ forgotten: 2, violations: [] })
    // A new master may lack units of windows only.
    const promoted = verdictOf(revoked, [{ ...loss[0], only: 'windows' }], use(797), use(1_500))
    expect(promoted.revocations).toMatchObject({ forgotten: 0, total: { late: 2 } })
    // Revoked after the loss.
    const anew = verdictOf(revoked, loss, [revocation(1_000, 1_010, { token: 'b' })])
    expect(anew.revocations.violations).toEqual([])
    const used = request(1_600, { route: 'free', token: 'b' })
    const after = verdictOf([revocation(1_000, 1_010, { token: 'b' })], loss, used)
    expect(after.revocations.total.late).toBe(1)
  })

  test('counts by fault and process', () => {
    const hang = [fault('hang', 50, 1_000, [1])]
    const { revocations } = verdictOf(revoked, hang, use(200, 0), use(200, 1), refusal(700, 1))
    expect(revocations.byFault).toMatchObject({
      hang: { revoked: 1, judged: 1, within: 1 },
      healthy: { revoked: 0, judged: 0, within: 1 },
    })
  })
})

describe('the check of responses', () => {
  test('finds unexplained responses', () => {
    const wrongOf = (events: readonly HistoryEvent[]) => verdictOf(events).answers.wrong
    expect(wrongOf(request(0, { arriveMs: null }))).toHaveLength(1)
    expect(wrongOf(request(0, { status: 503 }))).toHaveLength(1)
    expect(wrongOf(request(0, { status: 429, code: 'rate_limited' }))).toHaveLength(1)
    expect(wrongOf(refused(0, 401))).toHaveLength(1)
    expect(wrongOf(refused(0, 500))).toHaveLength(1)
    expect(wrongOf(refused(0, 503, { code: 'misconfigured' }))).toHaveLength(1)
    expect(wrongOf(refused(0, 429, { route: 'free' }))).toHaveLength(1)
    expect(wrongOf([{ kind: 'arrival', id: -1, atMs: 0 }])).toHaveLength(1)
    expect(wrongOf(refused(0, 429))).toEqual([])
  })

  test('explains a 401 by a started revocation', () => {
    const tried = [revocation(90, 100, { status: 503 })]
    expect(verdictOf(tried, refused(88, 401)).answers.wrong).toEqual([])
    expect(verdictOf(tried, refused(80, 401)).answers.wrong).toHaveLength(1)
  })

  test('explains a 401 that reached the origin by a check of its open response', () => {
    const wrongAt = (age: number, revoked: readonly HistoryEvent[]) =>
      verdictOf(revoked, request(0, { status: 401, completeMs: age })).answers.wrong.map((text) =>
        text.split(': ').at(-1),
      )
    const since = (ms: number) => [revocation(ms, ms + 10)]
    expect(wrongAt(1_500, since(1_400))).toEqual([])
    expect(wrongAt(1_499, since(1_400))).toEqual(['it reached the origin'])
    expect(wrongAt(1_500, since(1_500))).toEqual(['not revoked'])
    expect(wrongAt(1_500, [])).toEqual(['not revoked'])
  })

  test('explains a 503 by a fault of that process, during and shortly after it', () => {
    const hang = [fault('hang', 1_000, 2_000, [1])]
    const unexplained = (invokeMs: number, process: number, status = 503) =>
      verdictOf(hang, refused(invokeMs, status, { process })).answers.unexplained.length
    expect(unexplained(1_500, 1)).toBe(0)
    expect(unexplained(998, 1)).toBe(0)
    expect(unexplained(990, 1)).toBe(1)
    expect(unexplained(8_999, 1)).toBe(0)
    expect(unexplained(9_001, 1)).toBe(1)
    expect(unexplained(1_500, 0)).toBe(1)
    expect(unexplained(1_500, 1, 0)).toBe(1)
    const killed = [fault('gateway-killed', 1_000, 2_000, [1])]
    const silent = refused(1_500, 0, { process: 1 })
    expect(verdictOf(killed, silent).answers.unexplained).toEqual([])
  })

  test('explains a 503 by an overloaded machine', () => {
    const starved = fault('starved', 1_000, 1_100)
    const hang = fault('hang', 500, 2_000, [1])
    const events = [...refused(1_050, 503, { process: 0 }), ...refused(1_050, 503, { process: 1 })]
    const { byFault, unexplained } = verdictOf([starved, hang], events).answers
    expect(unexplained).toEqual([])
    expect(byFault).toMatchObject({ starved: { requests: 1 }, hang: { requests: 1 } })
  })

  test('counts responses by the fault of the called process', () => {
    const hang = [fault('hang', 1_000, 2_000, [1])]
    const { byFault } = verdictOf(
      ...[hang, refused(1_500, 503, { process: 1 }), refused(3_000, 429, { process: 1 })],
      request(1_500, { process: 0 }),
    ).answers
    expect(byFault).toMatchObject({
      hang: { requests: 1, unavailable: 1 },
      recovering: { requests: 1, limited: 1 },
      healthy: { requests: 1, admitted: 1 },
    })
  })
})

describe('the check of refresh families', () => {
  const open = refreshed(0, '', 'a', { purpose: 'open' })
  const chain = [open, refreshed(10, 'a', 'b'), refreshed(20, 'b', 'c')]
  const refusal = { status: 400, code: 'invalid_grant', successor: '' }
  const replay = refreshed(30, 'a', '', { purpose: 'replay', ...refusal })
  const end = refreshed(30, 'c', '', { purpose: 'end' })
  const found = (...events: readonly HistoryEvent[]) =>
    verdictOf(events).families.violations.map((text) => text.split(': ').at(-1))

  test('accepts rotations, retries, replays that are refused, and an end', () => {
    const retry = refreshed(12, 'a', 'b', { process: 1, completeMs: 16 })
    const last = refreshed(40, 'c', '', refusal)
    expect(found(...chain, retry, replay, last)).toEqual([])
    expect(found(...chain, end, last)).toEqual([])
    expect(verdictOf([...chain, replay, last]).families).toMatchObject({
      ...{ families: 1, rotated: 2, replayed: 1, ended: 0 },
    })
  })

  test('finds a second successor, and a token that was accepted too late', () => {
    expect(found(...chain.slice(0, 2), refreshed(12, 'a', 'x'))).toEqual(
      Array(2).fill('a token with two successors'),
    )
    expect(found(...chain, refreshed(25, 'a', 'b'))).toEqual([
      'accepted after its successor was used',
    ])
    const graceMs = 10 + ANSWERED_MS + TERMS.graceMs
    expect(found(...chain.slice(0, 2), refreshed(graceMs, 'a', 'b'))).toEqual([])
    expect(found(...chain.slice(0, 2), refreshed(graceMs + 1, 'a', 'b'))).toEqual([
      'accepted after its grace period',
    ])
  })

  test('finds a use after the response to an end or a replay, and none before it', () => {
    for (const over of [end, replay]) {
      expect(found(...chain, over, refreshed(33, 'c', 'd'))).toEqual([])
      expect(found(...chain, over, refreshed(35, 'c', 'd'))).toEqual([
        'accepted after the end of its family',
      ])
    }
    const failed = { ...end, status: 503 }
    expect(found(...chain, failed, refreshed(40, 'c', 'd'))).toEqual([])
  })

  test('finds an end without a cause: a late use without a response, and a lost login, are causes', () => {
    const ended = refreshed(40, 'c', '', refusal)
    expect(found(...chain, ended)).toEqual(['ended without a cause'])
    const silent = refreshed(12, 'a', '', { status: 503 })
    expect(found(...chain, silent, ended)).toEqual([])
    const own = refreshed(30, 'c', '', { status: 503 })
    expect(found(...chain, own, ended)).toEqual(['ended without a cause'])
    const late = { ...ended, invokeMs: 31 + TERMS.graceMs, completeMs: 32 + TERMS.graceMs }
    expect(found(...chain, own, late)).toEqual([])
    const loss = { kind: 'loss', only: 'windows', fromMs: 1_500, untilMs: 2_000 } as const
    expect(found(...chain, loss, ended)).toEqual(['ended without a cause'])
    expect(found(...chain, { ...loss, fromMs: 500 }, ended)).toEqual([])
  })

  test('finds any other refusal', () => {
    const other = refreshed(40, 'c', '', { status: 401, code: 'invalid_client' })
    expect(found(...chain, other)).toEqual(['unexpected response'])
  })
})
