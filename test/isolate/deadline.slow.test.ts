import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createDeadlines } from '../../src/isolate/deadline.ts'
import { type EventLoop, installEventLoop } from './event-loop.ts'

const LONGEST_QUEUE_MS = 1_500
const QUEUE_CALLS = 8
const MS = 250

const startDeadline = (ms: number) => createDeadlines(ms).start()

afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

describe('a deadline', () => {
  test('expires after its time, with a TimeoutError', () => {
    const loop = installEventLoop(0)
    const { signal } = startDeadline(MS)
    loop.at(MS - 1, () => expect(signal.aborted).toBe(false))
    loop.run()
    expect(loop.now()).toBe(MS)
    expect(signal.aborted).toBe(true)
    expect((signal.reason as Error).name).toBe('TimeoutError')
  })

  test('uses five timers on a running isolate, and none for a prompt response', () => {
    const loop = installEventLoop(0)
    startDeadline(MS)
    loop.run()
    expect(loop.timersFired()).toBe(5)
    const prompt = startDeadline(MS)
    loop.at(loop.now() + MS / 10, () => prompt.end(true))
    loop.run()
    expect(loop.timersFired()).toBe(5)
  })

  test('does not expire while the isolate is blocked, nor right after', () => {
    const loop = installEventLoop(0)
    const deadline = startDeadline(MS)
    const { signal } = deadline
    loop.at(1, () => {}, 100 * MS)
    let answered = false
    // The response has arrived, and needs some turns of the event loop to be read.
    loop.at(5, () => read(8))
    function read(turns: number): void {
      answered = turns === 0 && !signal.aborted
      if (turns === 0) deadline.end(true)
      else loop.ready(() => loop.at(loop.now(), () => read(turns - 1)), MS)
    }
    loop.run()
    expect(answered).toBe(true)
    expect(signal.aborted).toBe(false)
  })

  test('never expires after it has ended', () => {
    const loop = installEventLoop(0)
    const deadline = startDeadline(MS)
    const { signal } = deadline
    loop.at(MS / 2, () => deadline.end(true))
    loop.run()
    expect(signal.aborted).toBe(false)
    expect(loop.now()).toBe(MS / 2)
  })

  test.each([10, 33, 250, 2_000, 5_000])('of %i ms expires after that time', (ms) => {
    const loop = installEventLoop(0)
    const { signal } = startDeadline(ms)
    loop.run()
    expect(signal.aborted).toBe(true)
    expect(Math.abs(loop.now() - ms)).toBeLessThan(1)
  })
})

/** The time at which Redis answers a call that it received at `sentMs`; infinite: never. */
type Service = (sentMs: number, index: number) => number

interface World {
  readonly loop: EventLoop
  readonly arrivalsMs: readonly number[]
  /** Time of this isolate for a request before its call is made. */
  readonly requestCostMs: number
  /** Time of each turn that sends a call or reads its response. */
  readonly turnCostMs: number
  readonly turns: number
  readonly service: Service
}

/** Runs the calls. Returns the outcome of each, and its duration in wall-clock time. */
function outcomesOf({ loop, arrivalsMs, requestCostMs, turnCostMs, turns, service }: World) {
  const deadlines = createDeadlines(MS)
  const outcomes: { readonly answered: boolean; readonly ms: number }[] = []
  function inTurns(count: number, then: () => void): void {
    if (count === 0) then()
    else loop.ready(() => inTurns(count - 1, then), turnCostMs)
  }
  arrivalsMs.forEach((arrivalMs, index) => {
    const call = () => {
      const startMs = loop.now()
      const deadline = deadlines.start()
      const { signal } = deadline
      const settle = (answered: boolean) => {
        if (outcomes[index] !== undefined) return
        outcomes[index] = { answered, ms: loop.now() - startMs }
        deadline.end(answered)
      }
      signal.addEventListener('abort', () => settle(false))
      inTurns(turns, () => {
        const answeredMs = service(loop.now(), index)
        if (answeredMs < Number.POSITIVE_INFINITY)
          loop.at(answeredMs, () => inTurns(turns, () => settle(true)))
      })
    }
    loop.at(arrivalMs, call, requestCostMs)
  })
  loop.run()
  return outcomes
}

const PROMPT_MS = 5
const LATE_MS = 400
const prompt: Service = (sentMs) => sentMs + PROMPT_MS
const late: Service = (sentMs) => sentMs + LATE_MS
const hung: Service = () => Number.POSITIVE_INFINITY

/** A service that answers in order, at most one call every `eachMs`. */
function queueing(eachMs: number): Service {
  let freeMs = 0
  return (sentMs) => {
    freeMs = Math.max(freeMs, sentMs) + eachMs
    return freeMs + PROMPT_MS
  }
}

/** From a fast machine to one with too little CPU time. */
const isolates = fc.record({
  requestCostMs: fc.double({ min: 0.2, max: 10, noNaN: true }),
  turnCostMs: fc.double({ min: 0.01, max: 2, noNaN: true }),
  turns: fc.integer({ min: 1, max: 4 }),
})
const bursts = fc.integer({ min: 1, max: 1_000 }).map((count) => Array<number>(count).fill(0))
/** Times at which the isolate is blocked, for example by garbage collection. */
const stalls = fc.array(
  fc.record({ atMs: fc.integer({ min: 0, max: 3_000 }), ms: fc.integer({ min: 0, max: 5_000 }) }),
  { maxLength: 20 },
)
const runs = { numRuns: 40 }

describe('deadlines in a model of an isolate', () => {
  test('no burst times out with a Redis that answers in 5 ms, however slow the isolate is', () => {
    fc.assert(
      fc.property(isolates, bursts, stalls, (isolate, arrivalsMs, pauses) => {
        const loop = installEventLoop()
        for (const { atMs, ms } of pauses) loop.at(atMs, () => {}, ms)
        const outcomes = outcomesOf({ ...isolate, loop, arrivalsMs, service: prompt })
        expect(outcomes).toHaveLength(arrivalsMs.length)
        expect(outcomes.filter(({ answered }) => !answered)).toEqual([])
      }),
      runs,
    )
  })

  test('no call times out with a Redis that answers call after call, however long the queue is', () => {
    fc.assert(
      fc.property(isolates, bursts, stalls, (isolate, arrivalsMs, pauses) => {
        const loop = installEventLoop()
        for (const { atMs, ms } of pauses) loop.at(atMs, () => {}, ms)
        // Slow, but the first eight are served in about half a deadline: a slower queue does not
        // count as moving.
        const slowestMs = MS / 2 / QUEUE_CALLS
        const eachMs = Math.min(slowestMs, (0.9 * LONGEST_QUEUE_MS) / arrivalsMs.length)
        const outcomes = outcomesOf({ ...isolate, loop, arrivalsMs, service: queueing(eachMs) })
        expect(outcomes.filter(({ answered }) => !answered)).toEqual([])
      }),
      runs,
    )
  })

  const steady = (perSecond: number) =>
    Array.from({ length: 2 * perSecond }, (_, index) => (index * 1_000) / perSecond)
  /** Fast enough for the offered load. */
  const running = { requestCostMs: 0.2, turnCostMs: 0.02, turns: 3 }

  test.each([
    ['a single call', [0]],
    ['10 calls a second', steady(10)],
    ['1,000 calls a second', steady(1_000)],
    ['a burst of 50', Array<number>(50).fill(0)],
  ])('a Redis that answers after 400 ms times out for %s [R03]', (_, arrivalsMs) => {
    for (const service of [late, hung]) {
      const loop = installEventLoop()
      const outcomes = outcomesOf({ ...running, loop, arrivalsMs, service })
      expect(outcomes).toHaveLength(arrivalsMs.length)
      expect(outcomes.filter(({ answered }) => answered)).toEqual([])
      expect(Math.max(...outcomes.map(({ ms }) => ms))).toBeLessThan(LATE_MS)
    }
  })

  test.each([
    [2, 20],
    [2, 200],
    [2, 1_000],
    [10, 1_000],
  ])(
    'with one late response in %i at %i a second, only the late ones time out [R03]',
    (n, perSecond) => {
      const loop = installEventLoop()
      const isLate = (index: number) => index % n === 0
      const service: Service = (sentMs, index) => (isLate(index) ? late : prompt)(sentMs, index)
      const outcomes = outcomesOf({ ...running, loop, arrivalsMs: steady(perSecond), service })
      expect(outcomes.map(({ answered }) => answered)).toEqual(
        outcomes.map((_, index) => !isLate(index)),
      )
    },
  )

  test.each([10, 100, 1_000])(
    'a Redis that becomes late under %i calls a second times out for each call from then on [R03]',
    (perSecond) => {
      const loop = installEventLoop()
      const [lateFromMs, promptAgainMs] = [500, 1_500]
      const isLate = (sentMs: number) => sentMs >= lateFromMs && sentMs < promptAgainMs
      const service: Service = (sentMs) => sentMs + (isLate(sentMs) ? LATE_MS : 50)
      const arrivalsMs = steady(perSecond)
      const outcomes = outcomesOf({ ...running, loop, arrivalsMs, service })
      // Of a thousand calls, those that began together with the last prompt ones may count as a
      // moving queue.
      const judged = arrivalsMs.flatMap((ms, index) =>
        [lateFromMs, promptAgainMs].some((edgeMs) => ms > edgeMs - 5 && ms < edgeMs + 60)
          ? []
          : [index],
      )
      expect(judged.map((index) => outcomes[index]?.answered)).toEqual(
        judged.map((index) => !isLate(arrivalsMs[index] ?? 0)),
      )
    },
  )

  test('a queue that stops moving times out one deadline later', () => {
    const loop = installEventLoop()
    const stopsMs = 600
    const inOrder = queueing(5)
    const service: Service = (sentMs, index) => {
      const answeredMs = inOrder(sentMs, index)
      return answeredMs < stopsMs ? answeredMs : Number.POSITIVE_INFINITY
    }
    const outcomes = outcomesOf({ ...running, loop, arrivalsMs: Array(500).fill(0), service })
    const served = outcomes.filter(({ answered }) => answered).length
    expect(served).toBeGreaterThan(50)
    expect(outcomes.slice(served).some(({ answered }) => answered)).toBe(false)
    expect(Math.max(...outcomes.map(({ ms }) => ms))).toBeLessThan(stopsMs + 1.5 * MS)
  })

  test('no call waits in a queue without end', () => {
    const loop = installEventLoop(0)
    const deadlines = createDeadlines(MS)
    const { signal } = deadlines.start()
    for (let ms = 0; ms < 4 * LONGEST_QUEUE_MS; ms += 10)
      for (let count = 0; count < QUEUE_CALLS; count++) {
        const earlier = deadlines.start()
        loop.at(ms, () => earlier.end(true))
      }
    let passedMs = 0
    signal.addEventListener('abort', () => {
      passedMs = loop.now()
    })
    loop.run()
    expect(passedMs).toBeCloseTo(LONGEST_QUEUE_MS, -1)
  })

  test('a burst to a silent Redis times out on a slow isolate as well [R03]', () => {
    fc.assert(
      fc.property(isolates, bursts, stalls, (isolate, arrivalsMs, pauses) => {
        const loop = installEventLoop()
        for (const { atMs, ms } of pauses) loop.at(atMs, () => {}, ms)
        const outcomes = outcomesOf({ ...isolate, loop, arrivalsMs, service: hung })
        expect(outcomes).toHaveLength(arrivalsMs.length)
        expect(outcomes.filter(({ answered }) => answered)).toEqual([])
        // Each call uses at most this many timers, so an outage cannot block the isolate for long.
        expect(loop.timersFired()).toBeLessThanOrEqual(22 * arrivalsMs.length)
      }),
      runs,
    )
  })
})
