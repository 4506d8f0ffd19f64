import { describe, expect, test } from 'vitest'
import { createTail, isReadOfTrail, type TrailEvent } from '../../cli/tail.ts'

const START = Date.parse('2026-11-20T16:00:00.000Z')
const event = (id: string, seconds: number): TrailEvent => ({
  id,
  time: new Date(START + seconds * 1_000).toISOString(),
})
const ids = (events: readonly TrailEvent[]) => events.map(({ id }) => id)

describe('a tail of the audit trail', () => {
  test('returns every event once, the oldest first, even if several pages contain it', () => {
    const tail = createTail(START)
    expect(ids(tail.unseen([event('c', 2), event('b', 1), event('a', 1)]))).toEqual(['a', 'b', 'c'])
    expect(ids(tail.unseen([event('d', 3), event('c', 2), event('b', 1)]))).toEqual(['d'])
    expect(tail.unseen([event('d', 3), event('c', 2)])).toEqual([])
  })

  test('returns an event that arrives after newer events', () => {
    const tail = createTail(START)
    tail.unseen([event('young', 40)])
    expect(Date.parse(tail.since())).toBeLessThanOrEqual(START + 15_000)
    expect(ids(tail.unseen([event('young', 40), event('late', 15)]))).toEqual(['late'])
  })

  test('never queries events before its start, and advances with time', () => {
    const tail = createTail(START)
    expect(tail.since()).toBe(event('', 0).time)
    tail.unseen([event('a', 10)])
    expect(tail.since()).toBe(event('', 0).time)
    tail.unseen([event('b', 3_600)])
    expect(Date.parse(tail.since())).toBeGreaterThan(START + 3_500_000)
  })

  test('returns no event twice at the limit of the events that it stores', () => {
    const tail = createTail(START)
    const events = Array.from({ length: 200 }, (_, index) => event(`e${index}`, index))
    const returned: TrailEvent[] = []
    for (let end = 1; end <= events.length; end++) {
      const since = Date.parse(tail.since())
      const page = events.slice(0, end).filter(({ time }) => Date.parse(time) >= since)
      returned.push(...tail.unseen(page.reverse()))
    }
    expect(returned).toEqual(events)
  })
})

describe('isReadOfTrail', () => {
  const actor = { client: 'me' }
  const read = {
    ...event('a', 1),
    method: 'GET',
    route: '/-/admin/audit',
    decision: 'allow',
    actor,
  }

  test('is true for an allowed read of the client itself', () => {
    expect(isReadOfTrail(read, 'me')).toBe(true)
  })

  test.each<[string, Partial<TrailEvent>]>([
    ['a read of another client', { actor: { client: 'other' } }],
    ['a read without a client', { actor: { client: null } }],
    ['a refused read', { decision: 'deny' }],
    ['a read of the chain', { route: '/-/admin/audit/chain' }],
    ['a change', { method: 'POST' }],
  ])('is false for %s', (_what, other) => {
    expect(isReadOfTrail({ ...read, ...other }, 'me')).toBe(false)
  })
})
