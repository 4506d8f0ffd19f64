/** Work after a response, which one request of an isolate does for all of them. */
import { isUntil } from './period.ts'
import { sleep as sleepFor } from './timers.ts'

/** Keeps a Worker alive until a promise settles. The promise must not reject. */
export type WaitUntil = (promise: Promise<unknown>) => void

interface AfterResponseOptions {
  /** How long the request waits for others before it does the work, in milliseconds. */
  readonly delayMs: number
  /** After this time the platform has ended the request, and another one takes over. */
  readonly leaseMs: number
  /** Must not reject. Other requests leave the work to this one until it ends, or calls `release`. */
  readonly work: (release: () => void) => Promise<void>
  readonly now: () => number
  readonly sleep?: ((ms: number) => Promise<void>) | undefined
}

/**
 * Creates a function that requests call when there is work. The first request does it after its
 * response, with `waitUntil`. The others return at once and never wait.
 */
export function createAfterResponse({
  delayMs,
  leaseMs,
  work,
  now,
  sleep = sleepFor,
}: AfterResponseOptions): (waitUntil: WaitUntil) => void {
  let leasedUntilMs = 0

  async function run(): Promise<void> {
    let isReleased = false
    function release(): void {
      // Only once: later, the lease may belong to another request.
      if (!isReleased) leasedUntilMs = 0
      isReleased = true
    }
    await sleep(delayMs)
    await work(release)
    release()
  }

  return function afterResponse(waitUntil) {
    const nowMs = now()
    if (isUntil(leasedUntilMs, leaseMs, nowMs)) return
    leasedUntilMs = nowMs + leaseMs
    waitUntil(run())
  }
}
