/** Deadlines for calls to one dependency, which tell a burst here from an outage there. */

/** From so many calls at once on, it is this isolate and its sockets that are late. */
export const BURST_CALLS = 32
/** The burst is over when no more than these wait. */
const CALM_CALLS = 2
/** How much longer a call may take in a burst, while others are answered. */
export const BURST_STRETCH = 6
/** But no longer than this: what a call has decided is old by the time that its answer takes. */
const MAX_STRETCHED_MS = 1_500
/** And while none has been answered since it began: a burst may meet an outage, too. */
export const SILENT_BURST_STRETCH = 1.4
/** A deadline is lived through in so many steps. */
const STEPS = 5
/** After so many times its longest deadline a call is not late but gone. */
const DEAD_AFTER = 2

/** One call's deadline. */
export interface Deadline {
  /** Aborts, with a `TimeoutError`, when the deadline has passed. */
  readonly signal: AbortSignal
  /**
   * Ends the deadline; `answered` tells that the dependency is alive. Returns whether this isolate
   * ran for most of the time: if not, a call that got no answer says nothing of the dependency.
   */
  end(answered: boolean): boolean
}

/** Starts deadlines for the calls of one isolate to one dependency. */
export interface Deadlines {
  start(): Deadline
}

/**
 * Deadlines of `ms` milliseconds that this isolate lives through: what a collection of garbage or a
 * starved machine takes away is added, for the answer may lie in the socket all the while.
 *
 * A burst of requests queues up in the isolate and in the sockets before it; a plain timer would
 * turn requests that Redis has admitted, and counted, into 503s. So from 32 waiting calls on, until
 * they have drained, each may take 1.4 times as long, and six times while others are answered;
 * unless the dependency is known to be silent: the first deadline that passes without any answer
 * since it began makes it so, and the next answer ends that. A call whose request the platform has
 * ended never ends by itself: it stops counting as waiting once no deadline could still be running.
 */
export function createDeadlines(ms: number, now: () => number = Date.now): Deadlines {
  const longestMs = Math.max(ms, Math.min(BURST_STRETCH * ms, MAX_STRETCHED_MS))
  /** The calls that wait, oldest first. */
  const waiting = new Set<{ readonly startMs: number }>()
  let lastAnswerMs = 0
  let silent = false
  let burst = false

  function forgetDead(nowMs: number): void {
    for (const call of waiting) {
      if (nowMs - call.startMs <= longestMs * DEAD_AFTER) return
      waiting.delete(call)
      if (waiting.size <= CALM_CALLS) burst = false
    }
  }

  return {
    start() {
      const controller = new AbortController()
      const startMs = now()
      forgetDead(startMs)
      const call = { startMs }
      waiting.add(call)
      if (waiting.size >= BURST_CALLS) burst = true

      const stepMs = ms / STEPS
      let dueMs = startMs + stepMs
      let stalledMs = 0

      /** In a burst: far while answers come in, a little until the first has had its chance. */
      function stretch(): number {
        if (!burst || silent) return 1
        return lastAnswerMs > startMs ? BURST_STRETCH : SILENT_BURST_STRETCH
      }
      function check(): void {
        const nowMs = now()
        stalledMs += Math.max(0, nowMs - dueMs)
        const maxMs = Math.min(stretch() * ms + stalledMs, longestMs)
        const restMs = startMs + maxMs - nowMs
        if (restMs > 0) {
          const waitMs = Math.min(restMs, stepMs)
          dueMs = nowMs + waitMs
          timer = setTimeout(check, waitMs)
          return
        }
        silent = lastAnswerMs < startMs
        controller.abort(new DOMException('The deadline has passed', 'TimeoutError'))
      }
      let timer = setTimeout(check, stepMs)
      return {
        signal: controller.signal,
        end(answered) {
          clearTimeout(timer)
          waiting.delete(call)
          if (waiting.size <= CALM_CALLS) burst = false
          if (answered) {
            lastAnswerMs = now()
            silent = false
          }
          return stalledMs < ms
        },
      }
    },
  }
}
