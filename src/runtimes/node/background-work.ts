/** Work after responses: the `waitUntil` of Workers. A process must not end before it. */
import { setImmediate as immediate } from 'node:timers/promises'
import type { ExecutionContext } from 'hono'

export interface BackgroundWork {
  /** The context of every request. */
  readonly context: ExecutionContext
  /** Resolves when no work is left, or after `ms`. Never rejects. */
  settled(ms: number): Promise<void>
}

export function createBackgroundWork(): BackgroundWork {
  let open = 0
  let onIdle: (() => void) | undefined

  function ended(): void {
    open -= 1
    if (open === 0) onIdle?.()
  }

  return {
    context: {
      waitUntil(work) {
        open += 1
        work.then(ended, ended)
      },
      passThroughOnException() {},
      props: {},
    },
    async settled(ms) {
      let isExpired = false
      const timer = setTimeout(() => {
        isExpired = true
        onIdle?.()
      }, ms)
      while (open > 0 && !isExpired) {
        const { promise, resolve } = Promise.withResolvers<void>()
        onIdle = resolve
        await promise
        // Work may begin more work when it ends.
        await immediate()
      }
      clearTimeout(timer)
    },
  }
}
