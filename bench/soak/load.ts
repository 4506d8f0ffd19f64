/** Offers requests at a rate that does not depend on the responses. */
import { setTimeout as sleep } from 'node:timers/promises'
import { SHARES, type ShotKind } from './mix.ts'
import type { Sender, Shot } from './sender.ts'

const MS_PER_SECOND = 1_000

export interface LoadOptions {
  readonly sender: Sender
  readonly shotOf: (kind: ShotKind) => Promise<Shot>
  random(): number
}

export function createLoad({ sender, shotOf, random }: LoadOptions) {
  const kinds = Object.entries(SHARES) as readonly [ShotKind, number][]
  const total = kinds.reduce((sum, [, share]) => sum + share, 0)
  let answered = 0

  function anyKind(): ShotKind {
    let at = random() * total
    for (const [kind, share] of kinds) {
      at -= share
      if (at < 0) return kind
    }
    return 'inline'
  }

  async function fire(dueMs: number): Promise<void> {
    await sender.send(await shotOf(anyKind()), { dueMs })
    answered++
  }

  return {
    /** Sends `concurrency` sequences of requests. Returns the requests per second. */
    async measurePeak(concurrency: number, seconds: number): Promise<number> {
      const startMs = Date.now()
      const untilMs = startMs + seconds * MS_PER_SECOND
      // The first third is the warm-up: compilers, connections, caches.
      const countFromMs = startMs + (seconds * MS_PER_SECOND) / 3
      let before: number | undefined
      await Promise.all(
        Array.from({ length: concurrency }, async () => {
          while (Date.now() < untilMs) {
            await fire(Date.now())
            if (Date.now() >= countFromMs) before ??= answered
          }
        }),
      )
      return ((answered - (before ?? answered)) / (Date.now() - countFromMs)) * MS_PER_SECOND
    },
    /** Offers `rate` requests per second at random times. Responses may still be missing. */
    async offer(rate: number, untilMs: number, signal: AbortSignal): Promise<void> {
      let dueMs = Date.now()
      while (dueMs < untilMs && !signal.aborted) {
        const nowMs = Date.now()
        while (dueMs <= nowMs && dueMs < untilMs) {
          void fire(dueMs)
          dueMs += (-Math.log(1 - random()) * MS_PER_SECOND) / rate
        }
        await sleep(Math.max(1, dueMs - nowMs))
      }
    },
  }
}
