/** Work after responses: the `waitUntil` of Workers. A process must not end before it. */
import type { ExecutionContext } from 'hono'

export interface BackgroundWork {
  /** The context of every request. */
  readonly context: ExecutionContext
  /** Resolves when no work is left, or after `ms`. Never rejects. */
  settled(ms: number): Promise<void>
}

export function createBackgroundWork(): BackgroundWork {
  const open = new Set<Promise<unknown>>()
  return {
    context: {
      waitUntil(work) {
        const ended = () => void open.delete(work)
        open.add(work)
        work.then(ended, ended)
      },
      passThroughOnException() {},
      props: {},
    },
    async settled(ms) {
      const { promise: expired, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, ms)
      // Work may begin more work.
      const all = async () => {
        while (open.size > 0) await Promise.allSettled(open)
      }
      await Promise.race([all(), expired])
      clearTimeout(timer)
    },
  }
}
