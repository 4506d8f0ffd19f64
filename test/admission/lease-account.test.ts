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
