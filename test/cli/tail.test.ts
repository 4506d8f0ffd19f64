import { describe, expect, test } from 'vitest'
import { createTail, isReadOfTrail, type TrailEvent } from '../../cli/tail.ts'

const START = Date.parse('2026-11-20T16:00:00.000Z')
const event = (id: string, seconds: number): TrailEvent => ({
  id,
  time: new Date(START + seconds * 1_000).toISOString(),
})
const ids = (events: readonly TrailEvent[]) => events.map(({ id }) => id)

describe('a tail of the audit trail', () => {
  test('tells every event once, oldest first, however often it comes', () => {
    const tail = createTail(START)
    expect(ids(tail.unseen([event('c', 2), event('b', 1), event('a', 1)]))).toEqual(['a', 'b', 'c'])
    expect(ids(tail.unseen([event('d', 3), event('c', 2), event('b', 1)]))).toEqual(['d'])
    expect(tail.unseen([event('d', 3), event('c', 2)])).toEqual([])
  })

  test('tells an event that arrives after younger ones', () => {
    const tail = createTail(START)
    tail.unseen([event('young', 40)])
    expect(Date.parse(tail.since())).toBeLessThanOrEqual(START + 15_000)
    expect(ids(tail.unseen([event('young', 40), event('late', 15)]))).toEqual(['late'])
  })

  test('never asks for what was before its start, and goes on as time does', () => {
    const tail = createTail(START)
    expect(tail.since()).toBe(event('', 0).time)
    tail.unseen([event('a', 10)])
    expect(tail.since()).toBe(event('', 0).time)
    tail.unseen([event('b', 3_600)])
    expect(Date.parse(tail.since())).toBeGreaterThan(START + 3_500_000)
  })

  test('tells no event twice at the edge of what it remembers', () => {
    const tail = createTail(START)
    const events = Array.from({ length: 200 }, (_, index) => event(`e${index}`, index))
    const told: TrailEvent[] = []
    for (let end = 1; end <= events.length; end++) {
      const since = Date.parse(tail.since())
      const page = events.slice(0, end).filter(({ time }) => Date.parse(time) >= since)
      told.push(...tail.unseen(page.reverse()))
    }
    expect(told).toEqual(events)
  })
})

describe('a read of the trail by the client that tails it', () => {
  const actor = { client: 'me' }
  const read = {
    ...event('a', 1),
    method: 'GET',
    route: '/-/admin/audit',
    decision: 'allow',
    actor,
  }

  test('is one that was allowed', () => {
    expect(isReadOfTrail(read, 'me')).toBe(true)
  })

  test.each<[string, Partial<TrailEvent>]>([
    ['of another client', { actor: { client: 'other' } }],
    ['of nobody', { actor: { client: null } }],
    ['that was refused', { decision: 'deny' }],
    ['of its chain', { route: '/-/admin/audit/chain' }],
    ['that is none, but a change', { method: 'POST' }],
  ])('is not one %s', (_what, other) => {
    expect(isReadOfTrail({ ...read, ...other }, 'me')).toBe(false)
  })
})
