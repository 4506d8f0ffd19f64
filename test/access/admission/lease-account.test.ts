/** What an isolate may spend of its leases, when it requests more, and what it returns. */
import { describe, expect, test } from 'vitest'
import { LeaseAccount } from '../../../src/access/admission/lease-account.ts'
import { createLeaseBook } from '../../../src/access/admission/lease-book.ts'
import { limitOf } from './callers.ts'

const LEASE_MARGIN_MS = 100
const TTL_MS = 1_000
const WINDOW_SECONDS = 60
const WINDOW_MS = WINDOW_SECONDS * 1_000
const START_MS = 1e12

const account = (max = 1_000, cost = 1) =>
  new LeaseAccount({ cost, windowSeconds: WINDOW_SECONDS, lease: { max, ttlMs: TTL_MS } })
const use = (one: LeaseAccount, count: number, nowMs = START_MS) => {
  for (let n = 0; n < count; n++) one.use(nowMs)
}
/** Requests a lease and grants all of it, or `units`. Returns the units that it holds. */
function lend(one: LeaseAccount, sentMs: number, units?: number): number {
  const leaseRequest = one.request(sentMs)
  if (leaseRequest === undefined) return 0
  const granted = units ?? leaseRequest.units
  one.settle(leaseRequest, { units: granted, endMicros: sentMs * 1000 }, sentMs)
  return granted
}

describe('a lease account [R16]', () => {
  test('requests no units for a rare caller, and requests them for a frequent one', () => {
    const one = account()
    use(one, 3)
    expect(one.request(START_MS)).toBeUndefined()
    use(one, 97)
    expect(one.request(START_MS)).toEqual({
      units: 150,
      step: 1,
      holdMs: TTL_MS + LEASE_MARGIN_MS,
      returned: 0,
      returnedEndMicros: 0,
    })
  })

  test('requests the use of one lease lifetime plus half, up to the maximum', () => {
    const at = (max: number, cost: number) => {
      const one = account(max, cost)
      use(one, 100)
      return one.request(START_MS)?.units
    }
    expect(at(1_000, 1)).toBe(150)
    expect(at(40, 1)).toBe(40)
    expect(at(1_000, 3)).toBe(450)
    expect(at(40, 3)).toBe(39)
  })

  test('has one request in progress at a time, until it is answered or lost', () => {
    const one = account()
    use(one, 100)
    const leaseRequest = one.request(START_MS)
    expect(one.request(START_MS + 1)).toBeUndefined()
    expect(one.renewal(START_MS + 1)).toBeUndefined()
    if (leaseRequest !== undefined) one.settle(leaseRequest, undefined, START_MS)
    expect(one.request(START_MS + 1)).toBeDefined()
    use(one, 100, START_MS + 900)
    expect(one.request(START_MS + 1_001)).toBeDefined()
  })

  test('spends units until their lifetime has passed since the call was sent, and no longer', () => {
    const one = account()
    use(one, 100)
    lend(one, START_MS)
    expect(one.held(START_MS + TTL_MS - 1)).toBe(150)
    expect(one.spend()).toBe(true)
    expect(one.held(START_MS + TTL_MS)).toBe(0)
    expect(one.spend()).toBe(false)
  })

  test('drops what it holds if the clock is set back', () => {
    const one = account()
    use(one, 100)
    lend(one, START_MS)
    expect(one.held(START_MS - 1)).toBe(0)
  })

  test('spends the whole cost of a request, or nothing', () => {
    const one = account(1_000, 3)
    use(one, 100)
    lend(one, START_MS, 6)
    expect([one.spend(), one.spend(), one.spend()]).toEqual([true, true, false])
  })

  test('is renewed behind a response when half of the units or half of the lifetime is used', () => {
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

  test('waits half a lifetime before it renews a small grant', () => {
    const one = account()
    use(one, 100)
    lend(one, START_MS, 2)
    expect(one.renewal(START_MS + 1)).toBeUndefined()
    expect(one.renewal(START_MS + TTL_MS / 2)).toBeDefined()
  })

  test('returns unspent units once, with the end of the earliest of them', () => {
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

  test('returns no units that have left the window already', () => {
    const one = account()
    use(one, 100)
    lend(one, START_MS)
    expect(one.held(START_MS + WINDOW_MS)).toBe(0)
    expect(one.renewal(START_MS + WINDOW_MS)?.returned ?? 0).toBe(0)
  })

  test('requests no lease in the window after a refusal', () => {
    const one = account()
    one.refused(START_MS)
    use(one, 100, START_MS + WINDOW_MS - 1)
    expect(one.request(START_MS + WINDOW_MS - 1)).toBeUndefined()
    expect(one.request(START_MS + WINDOW_MS)).toBeDefined()
  })

  test('does not spend surrendered units', () => {
    const one = account()
    use(one, 100)
    lend(one, START_MS)
    one.surrender()
    expect(one.held(START_MS)).toBe(0)
    expect(one.renewal(START_MS + 1)?.returned).toBe(150)
  })

  test('holds at most the maximum, whatever is granted late', () => {
    const one = account(100)
    use(one, 100)
    const lost = one.request(START_MS)
    use(one, 100, START_MS + 1_500)
    lend(one, START_MS + 1_500)
    if (lost !== undefined) one.settle(lost, { units: 100, endMicros: 1 }, START_MS + 1_400)
    expect(one.held(START_MS + 1_500)).toBe(100)
  })
})

describe('the size of a lease request [R16]', () => {
  /** Returns an account that has used 100 in this lifetime and holds 150. */
  function filled(max = 1_000): LeaseAccount {
    const one = account(max)
    use(one, 100)
    lend(one, START_MS)
    return one
  }
  const spend = (one: LeaseAccount, count: number) => {
    for (let n = 0; n < count; n++) one.spend()
  }

  test('starts at four uses in a lease lifetime, whatever a use costs', () => {
    for (const [cost, units] of [
      [1, 6],
      [3, 18],
    ] as const) {
      const one = account(1_000, cost)
      use(one, 3)
      expect(one.request(START_MS), `cost ${cost}`).toBeUndefined()
      one.use(START_MS)
      expect(one.request(START_MS)?.units, `cost ${cost}`).toBe(units)
    }
  })

  test('weights the previous lifetime by the part of it that is recent', () => {
    const one = account()
    use(one, 100)
    expect(one.request(START_MS + TTL_MS + TTL_MS / 4)?.units).toBe(112)
    const other = account()
    use(other, 100)
    expect(other.request(START_MS + 2 * TTL_MS)).toBeUndefined()
  })

  test('of a renewal is what is missing, up to the maximum', () => {
    const one = filled()
    spend(one, 80)
    expect(one.renewal(START_MS + 1)?.units).toBe(80)
    const most = filled(100)
    spend(most, 60)
    expect(most.renewal(START_MS + 1)?.units).toBe(60)
    const unspent = filled(160)
    expect(unspent.renewal(START_MS + TTL_MS / 2)?.units).toBe(10)
  })

  test('does not count units that will expire unused as held', () => {
    expect(filled().renewal(START_MS + TTL_MS / 2)?.units).toBe(100)
  })

  test('is sent when less than half is left', () => {
    const one = filled()
    spend(one, 75)
    expect(one.renewal(START_MS + 1)).toBeUndefined()
    spend(one, 1)
    expect(one.renewal(START_MS + 1)).toBeDefined()
  })

  test('counts half of the requested units as enough: the renewal does not wait', () => {
    const one = account()
    use(one, 100)
    expect(lend(one, START_MS, 75)).toBe(75)
    spend(one, 1)
    expect(one.renewal(START_MS + 1)).toBeDefined()
  })
})

describe('an account with several leases [R16]', () => {
  /**
   * Two concurrent calls: the first counts as lost, and its answer arrives after the second answer.
   */
  function late(max: number, second: number, first: number): LeaseAccount {
    const one = account(max)
    use(one, 100)
    const lost = one.request(START_MS)
    use(one, 100, LATER_MS)
    lend(one, LATER_MS, second)
    if (lost === undefined) throw new Error('the account requested nothing')
    one.settle(lost, { units: first, endMicros: START_MS * 1000 }, START_MS)
    return one
  }
  const LATER_MS = START_MS + TTL_MS

  test('ends each lease at its own time, in whatever order the answers arrive', () => {
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

  test('returns units once, with the end of the earliest of them', () => {
    const one = late(1_000, 50, 70)
    one.surrender()
    expect(one.renewal(LATER_MS + 1)).toMatchObject({
      returned: 120,
      returnedEndMicros: START_MS * 1000,
    })
    use(one, 100, LATER_MS + 1_500)
    expect(one.renewal(LATER_MS + 1_500)).toMatchObject({ returned: 0, returnedEndMicros: 0 })
  })

  test('keeps the end of the returned units when a lease is spent', () => {
    const one = account()
    use(one, 100)
    const lost = one.request(START_MS)
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

  test('returns nothing after the earliest unit has left the window', () => {
    const one = late(1_000, 50, 70)
    one.surrender()
    expect(one.renewal(START_MS + WINDOW_MS - 1)?.returned).toBe(120)
    const other = late(1_000, 50, 70)
    other.surrender()
    expect(other.renewal(START_MS + WINDOW_MS)?.returned ?? 0).toBe(0)
  })

  test('returns units with the next due call while it holds any', () => {
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

test('a grant that is returned whole does not delay the next renewal [R16]', () => {
  const ttlMs = 4_000
  const one = new LeaseAccount({ windowSeconds: WINDOW_SECONDS, lease: { max: 100, ttlMs } })
  use(one, 100)
  const [first, second] = [one.request(START_MS), one.request(START_MS + 1_000)]
  if (first === undefined || second === undefined) throw new Error('the account requested nothing')
  one.settle(first, { units: 100, endMicros: 1 }, START_MS)
  one.settle(second, { units: 100, endMicros: 2 }, START_MS + 1_000)
  for (let n = 0; n < 10; n++) one.spend()
  expect(one.renewal(START_MS + ttlMs / 2)).toMatchObject({ units: 10, returned: 100 })
})

describe('a set of accounts [R19]', () => {
  const lease = { max: 1_000, ttlMs: TTL_MS }
  const leased = (more = {}) => limitOf({ limit: 1_000, lease, ...more })
  const stateOf = (limit: ReturnType<typeof leased>) => ({
    rule: limit.rule,
    limit: 1_000,
    remaining: 900,
    resetMs: START_MS,
    admitted: true,
    grant: { units: 50, endMicros: 1 },
  })
  function filled(
    book: ReturnType<typeof createLeaseBook>,
    limit: ReturnType<typeof leased>,
  ): void {
    for (let n = 0; n < 100; n++) {
      const requested = book.withLeaseRequests([limit], START_MS)
      if (requested[0]?.leaseRequest === undefined) continue
      book.settle(requested, [stateOf(limit)], START_MS)
      return
    }
    throw new Error('the account requested nothing')
  }

  test('is bounded: an evicted caller costs a call again', () => {
    const book = createLeaseBook(undefined, 2)
    const [first, second, third] = [leased(), leased(), leased()]
    for (const limit of [first, second, third]) filled(book, limit)
    expect(book.spend([third], START_MS)).toHaveLength(1)
    expect(book.spend([second], START_MS)).toHaveLength(1)
    expect(book.spend([first], START_MS)).toBeUndefined()
  })

  test('spends from all limits of a request or from none, and reports what is left without held units', () => {
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

  test('spends twice from a limit that is listed twice', () => {
    const book = createLeaseBook()
    const limit = leased()
    filled(book, limit)
    let admitted = 0
    while (book.spend([limit, limit], START_MS) !== undefined) admitted += 1
    expect(admitted).toBe(25)
  })

  test('returns the units held under an old limit after the limit changes', () => {
    const book = createLeaseBook()
    const limit = leased()
    filled(book, limit)
    const { grant: _, ...state } = stateOf(limit)
    book.settle([limit], [{ ...state, limit: 10 }], START_MS)
    expect(book.spend([limit], START_MS)).toBeUndefined()
  })
})
