import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import type { KeySetCache } from '../../../src/access/tokens/key-set-source.ts'
import { usualOrLong } from '../../harness/long.ts'
import { type Behavior, keySetOn, startProvider } from './provider.ts'
import { createSigner, NOW_MS } from './signer.ts'

const COOL_DOWN_MS = 30_000
const [old, rotated] = await Promise.all([
  createSigner('ES256', 'old'),
  createSigner('ES256', 'new'),
])
const before = JSON.stringify({ keys: [old.publicJwk] })
const after = JSON.stringify({ keys: [old.publicJwk, rotated.publicJwk] })

/** The writer of the shared cache has a fast clock, and the download begins before its time. */
const FROM_THE_FUTURE = {
  publishedMs: 0,
  maxAgeSeconds: 0 as const,
  sharedAgeMs: -1_196,
  requests: [
    { pauseMs: 1_195, isForNewKey: true, downloadMs: 2_016 },
    { pauseMs: 26_789, isForNewKey: true, downloadMs: 0 },
  ],
}

const schedule = fc.record({
  /** The publication time of the new key, in milliseconds from the start. */
  publishedMs: fc.integer({ min: 0, max: 150_000 }),
  maxAgeSeconds: fc.constantFrom(0, 60, 100, 300),
  /** Age of the set that the shared cache contains at the start, if any. */
  sharedAgeMs: fc.option(fc.integer({ min: -5_000, max: 250_000 }), { nil: undefined }),
  requests: fc.array(
    fc.record({
      pauseMs: fc.oneof(
        fc.integer({ min: 0, max: 3_000 }),
        fc.integer({ min: 0, max: 45_000 }),
        fc.constantFrom(COOL_DOWN_MS - 1, COOL_DOWN_MS),
      ),
      isForNewKey: fc.boolean(),
      /** Duration of a download that this request causes. */
      downloadMs: fc.integer({ min: 0, max: 2_500 }),
    }),
    { minLength: 1, maxLength: 25 },
  ),
})

it('a new key works one cool-down after its publication, with one download per cool-down [R07, R11]', async () => {
  await fc.assert(
    fc.asyncProperty(schedule, async ({ publishedMs, maxAgeSeconds, sharedAgeMs, requests }) => {
      const downloads: number[] = []
      let downloadMs = 0
      // Returns the set of the time at which the download began, after its duration.
      const behavior: Behavior = (response) => {
        const startedMs = set.nowMs() - NOW_MS
        downloads.push(startedMs)
        set.advance(downloadMs / 1000)
        response
          .writeHead(200, { 'cache-control': `max-age=${maxAgeSeconds}` })
          .end(startedMs >= publishedMs ? after : before)
      }
      const cache: KeySetCache | null =
        sharedAgeMs === undefined
          ? null
          : {
              read: async () => ({ text: before, fetchedAtMs: NOW_MS - sharedAgeMs }),
              write: async () => {},
            }
      const provider = await startProvider(behavior)
      const set = keySetOn(provider.url, { cache })
      try {
        for (const request of requests) {
          set.advance(request.pauseMs / 1000)
          downloadMs = request.downloadMs
          const atMs = set.nowMs() - NOW_MS
          const found = await set.find(request.isForNewKey ? rotated : old)
          await set.settled()
          if (!request.isForNewKey) expect(found).toBe('ok')
          else if (atMs >= publishedMs + COOL_DOWN_MS) expect(found, `${atMs}`).toBe('ok')
          else expect(found).toMatch(/^(ok|token_rejected:kid_unknown)$/)
        }
      } finally {
        await provider.close()
      }
      for (const [index, startedMs] of downloads.entries()) {
        const previousMs = downloads[index - 1] ?? Number.NEGATIVE_INFINITY
        expect(startedMs - previousMs).toBeGreaterThanOrEqual(COOL_DOWN_MS)
      }
    }),
    { seed: 20_261_128, numRuns: usualOrLong(120, 300), examples: [[FROM_THE_FUTURE]] },
  )
})
