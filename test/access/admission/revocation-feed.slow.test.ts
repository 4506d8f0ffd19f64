/** Properties of an isolate's view of the feed, for all events in any order. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  createRevocationFeed,
  type FeedReply,
  type RevocationFeed,
} from '../../../src/access/revocation/feed.ts'
import { NEVER } from '../../harness/never.ts'
import type { FeedModelOptions } from './feed-model.ts'
import { BOUND_MS, feedSchedules, live } from './feed-schedules.ts'
import { SEED } from './schedules.ts'

const RUNS = { seed: SEED, numRuns: 10_000 }
const view = (maxEntries = 3) => createRevocationFeed({ maxStalenessMs: BOUND_MS, maxEntries })

/** Returns the same view with the given members replaced. */
const changed = (feed: RevocationFeed, other: Partial<RevocationFeed>): RevocationFeed => ({
  get cursor() {
    return feed.cursor
  },
  holds: feed.holds,
  update: feed.update,
  needsRefresh: feed.needsRefresh,
  ...other,
})

const isFailed = (make: () => RevocationFeed, options?: FeedModelOptions) =>
  fc.check(
    fc.property(feedSchedules, (steps) => live(steps, make(), options).wrong === 0),
    RUNS,
  ).failed

describe('a view of the feed', () => {
  test.each([1, 3, 100])(
    'never reports a key as clean that was revoked for the bound, with room for %i keys',
    (maxEntries) => {
      let held = 0
      fc.assert(
        fc.property(feedSchedules, (steps) => {
          const lived = live(steps, view(maxEntries))
          held += lived.held
          expect(lived.wrong, NEVER).toBe(0)
        }),
        RUNS,
      )
      expect(held).toBeGreaterThan(10_000)
    },
  )

  test('the property fails for a view that exceeds its bound', () => {
    expect(isFailed(() => createRevocationFeed({ maxStalenessMs: BOUND_MS + 20 }))).toBe(true)
  })

  test('the property fails for a view that measures its age from the answer', () => {
    const make = () => {
      const feed = view()
      // A quarter of the bound after the call was sent.
      return changed(feed, {
        update: (reply, sentMs) => feed.update(reply, sentMs + BOUND_MS / 4),
      })
    }
    expect(isFailed(make)).toBe(true)
  })

  test('the property fails for a view that dates an answer at its arrival', () => {
    const make = () => {
      const feed = view()
      const update = (reply: FeedReply, sentMs: number) =>
        feed.update(reply, sentMs) === undefined ? undefined : feed.cursor.mark
      return changed(feed, { update })
    }
    expect(isFailed(make)).toBe(true)
  })

  test('the property fails for a view that reads "unknown" as "no changes"', () => {
    const make = () => {
      const feed = view()
      const update = (reply: FeedReply, sentMs: number) =>
        feed.update(
          feed.cursor.position === '' ? reply : { ...reply, changed: reply.changed ?? [] },
          sentMs,
        )
      return changed(feed, { update })
    }
    expect(isFailed(make)).toBe(true)
  })

  test('the property fails for a feed that accepts every position of its epoch', () => {
    expect(isFailed(view, { most: 3, entries: 6, checksTime: false })).toBe(true)
  })
})

describe('a view', () => {
  const reply = (feed: RevocationFeed, position: string, keys?: string[]): FeedReply => ({
    since: feed.cursor,
    position,
    changed: keys,
  })
  const begun = () => {
    const feed = createRevocationFeed({ maxStalenessMs: 1_000 })
    return { feed, mark: feed.update(reply(feed, 'p1'), 0) }
  }

  test('covers nothing at first, and nothing without a mark', () => {
    const feed = createRevocationFeed({ maxStalenessMs: 1_000 })
    expect(feed.holds(0, ['a'], 0)).toBe(false)
    expect(feed.holds(undefined, ['a'], 0)).toBe(false)
    expect(begun().feed.holds(undefined, ['a'], 0)).toBe(false)
  })

  test('is valid until the bound, and invalid if the clock is set back', () => {
    const { feed, mark } = begun()
    expect([0, 999, 1_000, -1].map((nowMs) => feed.holds(mark, ['a'], nowMs))).toEqual([
      ...[true, true, false, false],
    ])
  })

  test('gives one mark to concurrent first calls with the same position', () => {
    const feed = createRevocationFeed({ maxStalenessMs: 1_000 })
    const [first, second, third] = [reply(feed, 'p1'), reply(feed, 'p1'), reply(feed, 'p2')]
    const mark = feed.update(first, 0)
    expect(mark).toBeDefined()
    expect(feed.update(second, 1)).toBe(mark)
    expect(feed.update(third, 2)).toBeUndefined()
  })

  test('does not refresh from an unreadable position, and gives no mark', () => {
    const { feed, mark } = begun()
    expect(feed.update(reply(feed, ''), 900)).toBeUndefined()
    expect(feed.holds(mark, ['a'], 1_000)).toBe(false)
  })

  test('is invalid after more keys than it has room for, and valid again after the next answer', () => {
    const feed = createRevocationFeed({ maxStalenessMs: 1_000, maxEntries: 2 })
    const before = feed.update(reply(feed, 'p1'), 0)
    feed.update(reply(feed, 'p2', ['a', 'b', 'c']), 10)
    expect(feed.holds(before, ['x'], 10)).toBe(false)
    const after = feed.update(reply(feed, 'p2', []), 20)
    expect(feed.holds(after, ['a', 'x'], 20)).toBe(true)
    feed.update(reply(feed, 'p3', ['a']), 30)
    expect(feed.holds(after, ['a'], 30)).toBe(false)
    expect(feed.holds(after, ['x'], 30)).toBe(true)
  })

  test('requests one refresh at half of the bound, and another if that one fails', () => {
    const { feed } = begun()
    expect([0, 499].map(feed.needsRefresh)).toEqual([false, false])
    expect([500, 500, 624, 625, 626].map(feed.needsRefresh)).toEqual([
      ...[true, false, false, true, false],
    ])
    feed.update(reply(feed, 'p1', []), 700)
    expect([1_199, 1_200].map(feed.needsRefresh)).toEqual([false, true])
  })
})
