/** What an isolate may spend, when it asks for more, and what it gives back. */
import { describe, expect, test } from 'vitest'
import { LEASE_MARGIN_MS, type LeaseAccount } from '../../src/admission/lease.ts'
import { createLeaseAccount } from '../../src/admission/lease-account.ts'
import { createLeaseBook } from '../../src/admission/lease-book.ts'
import { limitOf } from './callers.ts'

const TTL_MS = 1_000
const WINDOW_MS = 60_000
const START_MS = 1e12

const account = (max = 1_000, cost = 1) =>
  createLeaseAccount({ max, cost, ttlMs: TTL_MS, windowMs: WINDOW_MS })
const use = (one: LeaseAccount, count: number, nowMs = START_MS) => {
  for (let n = 0; n < count; n++) one.use(nowMs)
}
/** Asks, and is granted all of it, or so many units. */
function lend(one: LeaseAccount, sentMs: number, units?: number): number {
  const ask = one.ask(sentMs)
  if (ask === undefined) return 0
  const granted = units ?? ask.units
  one.settle(ask, { units: granted, endMicros: sentMs * 1000 }, sentMs)
  return granted
}

describe('R16: an account of units ahead', () => {
  test('who is asked for now and then takes nothing ahead, and who is asked for often does', () => {
    const one = account()
    use(one, 3)
    expect(one.ask(START_MS)).toBeUndefined()
    use(one, 97)
    expect(one.ask(START_MS)).toEqual({
      ...{ units: 150, step: 1, holdMs: TTL_MS + LEASE_MARGIN_MS },
      ...{ returned: 0, returnedEndMicros: 0 },
    })
  })

  test('asks for what was used in the life of a lease, and half as much again, up to the most', () => {
    const at = (max: number, cost: number) => {
      const one = account(max, cost)
      use(one, 100)
      return one.ask(START_MS)?.units
    }
    expect(at(1_000, 1)).toBe(150)
    expect(at(40, 1)).toBe(40)
    expect(at(1_000, 3)).toBe(450)
    expect(at(40, 3)).toBe(39)
  })

  test('one call at a time asks, until it is heard of or lost', () => {
    const one = account()
    use(one, 100)
    const ask = one.ask(START_MS)
    expect(one.ask(START_MS + 1)).toBeUndefined()
    expect(one.renewal(START_MS + 1)).toBeUndefined()
    if (ask !== undefined) one.settle(ask, undefined, START_MS)
    expect(one.ask(START_MS + 1)).toBeDefined()
    use(one, 100, START_MS + 900)
    expect(one.ask(START_MS + 1_001)).toBeDefined()
  })

  test('spends until its time has passed since the call was sent, and not a moment longer', () => {
    const one = account()
    use(one, 100)
    lend(one, START_MS)
    expect(one.held(START_MS + TTL_MS - 1)).toBe(150)
    expect(one.spend()).toBe(true)
    expect(one.held(START_MS + TTL_MS)).toBe(0)
    expect(one.spend()).toBe(false)
  })

  test('a clock that is set back ends what is held', () => {
    const one = account()
    use(one, 100)
    lend(one, START_MS)
    expect(one.held(START_MS - 1)).toBe(0)
  })

  test('spends all of what a request costs, or nothing that counts', () => {
    const one = account(1_000, 3)
    use(one, 100)
    lend(one, START_MS, 6)
    expect([one.spend(), one.spend(), one.spend()]).toEqual([true, true, false])
  })

  test('is renewed behind an answer when half is spent, or half of its time has passed', () => {
    const one = account()
    use(one, 100)
    lend(one, START_MS)
    expect(one.renewal(START_MS + 1)).toBeUndefined()
    for (let n = 0; n < 80; n++) one.spend()
    expect(one.renewal(START_MS + 1)?.units).toBeGreaterThan(50)

    const other = account()
    use(other, 100)
    lend(other, START_MS)
    expect(other.renewal(START_MS + TTL_MS / 2 - 1)).toBeUndefined()
    expect(other.renewal(START_MS + TTL_MS / 2)?.units).toBeGreaterThan(50)
  })

  test('where little was granted, a renewal waits for half a life', () => {
    const one = account()
    use(one, 100)
    lend(one, START_MS, 2)
    expect(one.renewal(START_MS + 1)).toBeUndefined()
    expect(one.renewal(START_MS + TTL_MS / 2)).toBeDefined()
  })

  test('what is not spent goes back once, with when the first of it ends', () => {
    const one = account()
    use(one, 100)
    lend(one, START_MS)
    one.spend()
    one.held(START_MS + 3 * TTL_MS)
    const renewal = one.renewal(START_MS + 3 * TTL_MS)
    expect(renewal).toMatchObject({ units: 0, returned: 149, returnedEndMicros: START_MS * 1000 })
    if (renewal !== undefined) one.settle(renewal, undefined, START_MS + 3 * TTL_MS)
    expect(one.renewal(START_MS + 4 * TTL_MS)).toBeUndefined()
  })

  test('what has left the window by itself does not come back', () => {
    const one = account()
    use(one, 100)
    lend(one, START_MS)
    expect(one.held(START_MS + WINDOW_MS)).toBe(0)
    expect(one.renewal(START_MS + WINDOW_MS)?.returned ?? 0).toBe(0)
  })

  test('in the window after a refusal nothing is taken ahead', () => {
    const one = account()
    one.refused(START_MS)
    use(one, 100, START_MS + WINDOW_MS - 1)
    expect(one.ask(START_MS + WINDOW_MS - 1)).toBeUndefined()
    expect(one.ask(START_MS + WINDOW_MS)).toBeDefined()
  })

  test('what is surrendered is not spent', () => {
    const one = account()
    use(one, 100)
    lend(one, START_MS)
    one.surrender()
    expect(one.held(START_MS)).toBe(0)
    expect(one.renewal(START_MS + 1)?.returned).toBe(150)
  })

  test('no more than the most is held, whatever was granted late', () => {
    const one = account(100)
    use(one, 100)
    const lost = one.ask(START_MS)
    use(one, 100, START_MS + 1_500)
    lend(one, START_MS + 1_500)
    if (lost !== undefined) one.settle(lost, { units: 100, endMicros: 1 }, START_MS + 1_400)
    expect(one.held(START_MS + 1_500)).toBe(100)
  })
})

describe('R16: how much an account of units ahead asks for', () => {
  /** An account that has used 100 in this life and holds 150. */
  function filled(max = 1_000): LeaseAccount {
    const one = account(max)
    use(one, 100)
    lend(one, START_MS)
    return one
  }
  const spend = (one: LeaseAccount, count: number) => {
    for (let n = 0; n < count; n++) one.spend()
  }

  test('begins at four uses in the life of a lease, whatever a use costs', () => {
    for (const [cost, units] of [
      [1, 6],
      [3, 18],
    ] as const) {
      const one = account(1_000, cost)
      use(one, 3)
      expect(one.ask(START_MS), `cost ${cost}`).toBeUndefined()
      one.use(START_MS)
      expect(one.ask(START_MS)?.units, `cost ${cost}`).toBe(units)
    }
  })

  test('counts the life before by the part of it that is less than a life ago', () => {
    const one = account()
    use(one, 100)
    expect(one.ask(START_MS + TTL_MS + TTL_MS / 4)?.units).toBe(112)
    const other = account()
    use(other, 100)
    expect(other.ask(START_MS + 2 * TTL_MS)).toBeUndefined()
  })

  test('a renewal asks for what is missing, and for no more than the most', () => {
    const one = filled()
    spend(one, 80)
    expect(one.renewal(START_MS + 1)?.units).toBe(80)
    const most = filled(100)
    spend(most, 60)
    expect(most.renewal(START_MS + 1)?.units).toBe(60)
    const unspent = filled(160)
    expect(unspent.renewal(START_MS + TTL_MS / 2)?.units).toBe(10)
  })

  test('what will not be used before it ends is not counted as held', () => {
    expect(filled().renewal(START_MS + TTL_MS / 2)?.units).toBe(100)
  })

  test('is renewed when less than half is left', () => {
    const one = filled()
    spend(one, 75)
    expect(one.renewal(START_MS + 1)).toBeUndefined()
    spend(one, 1)
    expect(one.renewal(START_MS + 1)).toBeDefined()
  })

  test('a grant of half is not little: the renewal does not wait', () => {
    const one = account()
    use(one, 100)
    expect(lend(one, START_MS, 75)).toBe(75)
    spend(one, 1)
    expect(one.renewal(START_MS + 1)).toBeDefined()
  })
})

describe('R16: an account with several leases', () => {
  /** Two calls at once: the first is taken for lost, and its answer comes after that of the second. */
  function late(max: number, second: number, first: number): LeaseAccount {
    const one = account(max)
    use(one, 100)
    const lost = one.ask(START_MS)
    use(one, 100, LATER_MS)
    lend(one, LATER_MS, second)
    if (lost === undefined) throw new Error('nothing was asked for')
    one.settle(lost, { units: first, endMicros: START_MS * 1000 }, START_MS)
    return one
  }
  const LATER_MS = START_MS + TTL_MS

  test('a lease ends in its own time, in whatever order the answers come', () => {
    expect(late(1_000, 50, 70).held(LATER_MS)).toBe(50)
    const inOrder = account()
    use(inOrder, 100)
    lend(inOrder, START_MS, 70)
    use(inOrder, 100, START_MS + 600)
    lend(inOrder, START_MS + 600, 50)
    expect(inOrder.held(START_MS + TTL_MS - 1)).toBe(120)
    expect(inOrder.held(START_MS + TTL_MS)).toBe(50)
    expect(inOrder.held(START_MS + TTL_MS + 600)).toBe(0)
  })

  test('what goes back names the end of the first of it, and is told once', () => {
    const one = late(1_000, 50, 70)
    one.surrender()
    expect(one.renewal(LATER_MS + 1)).toMatchObject({
      returned: 120,
      returnedEndMicros: START_MS * 1000,
    })
    use(one, 100, LATER_MS + 1_500)
    expect(one.renewal(LATER_MS + 1_500)).toMatchObject({ returned: 0, returnedEndMicros: 0 })
  })

  test('a lease that is spent does not change the end of what goes back', () => {
    const one = account()
    use(one, 100)
    const lost = one.ask(START_MS)
    use(one, 100, LATER_MS)
    lend(one, LATER_MS, 10)
    one.surrender()
    if (lost !== undefined) one.settle(lost, { units: 1, endMicros: START_MS * 1000 }, START_MS)
    one.spend()
    expect(one.renewal(LATER_MS + 1)).toMatchObject({
      returned: 10,
      returnedEndMicros: LATER_MS * 1000,
    })
  })

  test('nothing goes back once the first of it has left the window', () => {
    const one = late(1_000, 50, 70)
    one.surrender()
    expect(one.renewal(START_MS + WINDOW_MS - 1)?.returned).toBe(120)
    const other = late(1_000, 50, 70)
    other.surrender()
    expect(other.renewal(START_MS + WINDOW_MS)?.returned ?? 0).toBe(0)
  })

  test('what goes back waits for a call that is due, as long as anything is held', () => {
    const one = late(100, 100, 100)
    expect(one.held(LATER_MS)).toBe(100)
    expect(one.renewal(LATER_MS + 1)).toBeUndefined()
    one.refused(LATER_MS)
    for (let n = 0; n < 99; n++) one.spend()
    expect(one.renewal(LATER_MS + 1)).toBeUndefined()
    one.spend()
    expect(one.renewal(LATER_MS + 1)).toMatchObject({ units: 0, returned: 100 })
  })
})

test('R16: a grant that goes back whole does not delay the next renewal', () => {
  const ttlMs = 4_000
  const one = createLeaseAccount({ max: 100, cost: 1, ttlMs, windowMs: WINDOW_MS })
  use(one, 100)
  const [first, second] = [one.ask(START_MS), one.ask(START_MS + 1_000)]
  if (first === undefined || second === undefined) throw new Error('nothing was asked for')
  one.settle(first, { units: 100, endMicros: 1 }, START_MS)
  one.settle(second, { units: 100, endMicros: 2 }, START_MS + 1_000)
  for (let n = 0; n < 10; n++) one.spend()
  expect(one.renewal(START_MS + ttlMs / 2)).toMatchObject({ units: 10, returned: 100 })
})

describe('R19: a book of accounts', () => {
  const lease = { max: 1_000, ttlMs: TTL_MS }
  const leased = (more = {}) => limitOf({ limit: 1_000, lease, ...more })
  const stateOf = (limit: ReturnType<typeof leased>) => ({
    ...{ rule: limit.rule, limit: 1_000, remaining: 900, resetMs: START_MS, admitted: true },
    grant: { units: 50, endMicros: 1 },
  })
  function filled(
    book: ReturnType<typeof createLeaseBook>,
    limit: ReturnType<typeof leased>,
  ): void {
    for (let n = 0; n < 100; n++) {
      const asked = book.asking([limit], START_MS)
      if (asked[0]?.ask === undefined) continue
      book.settle(asked, [stateOf(limit)], START_MS)
      return
    }
    throw new Error('nothing was asked for')
  }

  test('is bounded: who is pushed out is asked about again', () => {
    const book = createLeaseBook(undefined, 2)
    const [first, second, third] = [leased(), leased(), leased()]
    for (const limit of [first, second, third]) filled(book, limit)
    expect(book.spend([third], START_MS)).toHaveLength(1)
    expect(book.spend([second], START_MS)).toHaveLength(1)
    expect(book.spend([first], START_MS)).toBeUndefined()
  })

  test('spends of all limits of a request or of none, and tells what is left without what is held', () => {
    const book = createLeaseBook()
    const [one, other, strict] = [leased(), leased(), limitOf()]
    filled(book, one)
    expect(book.spend([one, other], START_MS)).toBeUndefined()
    expect(book.spend([one, strict], START_MS)).toBeUndefined()
    filled(book, other)
    for (let n = 0; n < 50; n++)
      expect(book.spend([one, other], START_MS)).toMatchObject([
        { remaining: 900 },
        { limit: 1_000 },
      ])
    expect(book.spend([one], START_MS)).toBeUndefined()
  })

  test('a limit that stands twice in a list is spent twice', () => {
    const book = createLeaseBook()
    const limit = leased()
    filled(book, limit)
    let admitted = 0
    while (book.spend([limit, limit], START_MS) !== undefined) admitted += 1
    expect(admitted).toBe(25)
  })

  test('another limit in force gives back what is held under the old one', () => {
    const book = createLeaseBook()
    const limit = leased()
    filled(book, limit)
    book.settle([limit], [{ ...stateOf(limit), grant: undefined, limit: 10 }], START_MS)
    expect(book.spend([limit], START_MS)).toBeUndefined()
  })
})
