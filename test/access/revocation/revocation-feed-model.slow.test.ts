/** The feed in Redis agrees with its specification, whatever happens to it. */
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FeedReply } from '../../../src/access/revocation/feed.ts'
import { MAX_FEED_CHANGES, MAX_FEED_ENTRIES } from '../../../src/access/revocation/feed.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { revokedTokenKey } from '../../../src/access/revocation/revocation.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRevocationFeedSource } from '../../harness/feed-source.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { REDIS_PROTOCOLS } from '../../harness/redis-protocols.ts'
import { createFeedModel } from '../admission/feed-model.ts'
import { SEED } from '../admission/schedules.ts'

const RUNS = { seed: SEED, numRuns: 40 }
const NOWHERE = { position: '', mark: 0 }

type Happening =
  | { readonly kind: 'write'; readonly token: string }
  | { readonly kind: 'read'; readonly back: number }
  | { readonly kind: 'lose' }
  | { readonly kind: 'save' }
  | { readonly kind: 'failOver' }

const write = fc.constantFrom('a', 'b', 'c').map((token): Happening => ({ kind: 'write', token }))
const read = fc.nat(12).map((back): Happening => ({ kind: 'read', back }))
const event = (kind: 'lose' | 'save' | 'failOver') => fc.constant<Happening>({ kind })
const histories = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: write },
    { weight: 6, arbitrary: read },
    { weight: 1, arbitrary: event('lose') },
    { weight: 2, arbitrary: event('save') },
    { weight: 2, arbitrary: event('failOver') },
  ),
  { minLength: 20, maxLength: 40 },
)

describe.each(REDIS_PROTOCOLS)('the revocation feed ($name)', ({ prefer, connect }) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())

  test('reports what its specification reports, after a loss and a failover as well', async () => {
    const rest = connect(redis)
    const source = createRevocationFeedSource(rest)
    const revocations = createRevocations(rest, Date.now)
    let reported = 0

    await fc.assert(
      fc.asyncProperty(histories, async (all) => {
        await redis.direct.del(DEFAULT_KEYS.feed)
        const model = createFeedModel({ most: MAX_FEED_CHANGES, entries: MAX_FEED_ENTRIES })
        let saved: Record<string, string> = {}
        // The last reply to each reader: of the model, and of Redis.
        const readers: [FeedReply, FeedReply][] = [
          [model.since(NOWHERE), await source.since(NOWHERE)],
        ]
        for (const change of all) {
          if (change.kind === 'write') {
            model.write(revokedTokenKey(DEFAULT_KEYS, change.token), 0)
            const untilSeconds = Date.now() / 1000 + 60
            await revocations.revokeToken({ tokenIdHash: change.token, untilSeconds })
          } else if (change.kind === 'read') {
            const [expected, real] = readers.at(-1 - change.back) ?? readers[0] ?? []
            if (expected === undefined || real === undefined) continue
            const next: [FeedReply, FeedReply] = [
              model.since({ position: expected.position, mark: 0 }),
              await source.since({ position: real.position, mark: 0 }),
            ]
            expect(next[1].changed).toEqual(next[0].changed)
            reported += next[1].changed?.length ?? 0
            readers.push(next)
          } else if (change.kind === 'lose') {
            model.lose()
            await redis.direct.del(DEFAULT_KEYS.feed)
            // The clock of some servers has a resolution of milliseconds.
            await sleep(2)
          } else if (change.kind === 'save') {
            model.save()
            saved = await redis.direct.hgetall(DEFAULT_KEYS.feed)
          } else {
            model.failOver(0)
            await redis.direct.del(DEFAULT_KEYS.feed)
            if (Object.keys(saved).length > 0) await redis.direct.hset(DEFAULT_KEYS.feed, saved)
          }
        }
      }),
      RUNS,
    )
    expect(reported).toBeGreaterThan(100)
  })
})
