/** Watches the deadlines of calls from outside, by their timers: see `src/isolate/deadline.ts`. */

/** Milliseconds of one call, by the clock and as its deadline counted them. */
export type WatchedCall = readonly [wallMs: number, countedMs: number, isExpired: boolean]

/** Path that returns the calls since it was last read, as {@link watchDeadlines} does. */
export const WATCHED_PATH = '/-/bench/deadlines'

interface Call {
  readonly startMs: number
  readonly isExpired: boolean
}

const isCall = (value: unknown): value is Call =>
  typeof value === 'object' && value !== null && 'startMs' in value && 'onExpiry' in value

/** Replaces the timers of this isolate. Returns a function that returns the calls which have ended since its last use. */
export function watchDeadlines(): () => readonly WatchedCall[] {
  const ended: WatchedCall[] = []
  const counted = new WeakMap<Call, number>()
  const steps = new Map<unknown, { call: Call; forMs: number; sinceMs: number }>()
  const scope = globalThis as unknown as Record<'setTimeout' | 'clearTimeout', CallableFunction>
  const { setTimeout: set, clearTimeout: clear } = scope

  const count = (call: Call, ms: number) => counted.set(call, (counted.get(call) ?? 0) + ms)
  const end = (call: Call) =>
    ended.push([Date.now() - call.startMs, counted.get(call) ?? 0, call.isExpired])

  scope.setTimeout = (fire: CallableFunction, forMs: number, ...more: unknown[]) => {
    const [of] = more
    if (!isCall(of)) return set(fire, forMs, ...more)
    const timer = set(() => {
      steps.delete(timer)
      count(of, forMs)
      fire(of)
      if (of.isExpired) end(of)
    }, forMs)
    steps.set(timer, { call: of, forMs, sinceMs: Date.now() })
    return timer
  }
  scope.clearTimeout = (timer: unknown) => {
    const step = steps.get(timer)
    if (step !== undefined) {
      steps.delete(timer)
      count(step.call, Math.min(step.forMs, Date.now() - step.sinceMs))
      end(step.call)
    }
    return clear(timer)
  }
  return () => ended.splice(0)
}
