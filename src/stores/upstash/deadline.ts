/** Deadlines for calls to one dependency, which tell a burst here from an outage there. */

/** From so many calls at once on, it is this isolate and its sockets that are late. */
export const BURST_CALLS = 32
/** The burst is over when no more than these wait. */
const CALM_CALLS = 2
/** How much longer a call may take in a burst. */
export const BURST_STRETCH = 6

/** One call's deadline. */
export interface Deadline {
  /** Aborts, with a `TimeoutError`, when the deadline has passed. */
  readonly signal: AbortSignal
  /** Ends the deadline; `answered` tells that the dependency is alive. */
  end(answered: boolean): void
}

/** Starts deadlines for the calls of one isolate to one dependency. */
export interface Deadlines {
  start(): Deadline
}

/**
 * Deadlines of `ms` milliseconds. A burst of requests queues up in the isolate and in the sockets
 * before it; a plain timer would turn requests that Redis has admitted, and counted, into 503s. So
 * from 32 waiting calls on, until they have drained, each may take six times as long, unless the
 * dependency is known to be silent: the first deadline that passes without any answer since it
 * began makes it so, and the next answer ends that.
 */
export function createDeadlines(ms: number, now: () => number = Date.now): Deadlines {
  let waiting = 0
  let lastAnswerMs = 0
  let silent = false
  let burst = false

  return {
    start() {
      const controller = new AbortController()
      const startMs = now()
      waiting += 1
      if (waiting >= BURST_CALLS) burst = true

      function check(): void {
        const maxMs = burst && !silent ? ms * BURST_STRETCH : ms
        if (now() - startMs < maxMs) {
          timer = setTimeout(check, ms)
          return
        }
        silent = lastAnswerMs < startMs
        controller.abort(new DOMException('The deadline has passed', 'TimeoutError'))
      }
      let timer = setTimeout(check, ms)
      return {
        signal: controller.signal,
        end(answered) {
          clearTimeout(timer)
          waiting -= 1
          if (waiting <= CALM_CALLS) burst = false
          if (!answered) return
          lastAnswerMs = now()
          silent = false
        },
      }
    },
  }
}
