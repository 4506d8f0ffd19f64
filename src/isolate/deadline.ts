/** Deadlines for the calls of one isolate to one dependency. They pass only while this isolate runs. */

/** A deadline is a chain of at least so many timers. */
const STEPS = 5
/** After a timer that fired late, the next step is this many times shorter. */
const FINER = 5
/** After so many responses to earlier calls, a call counts as queued at the dependency. */
export const QUEUE_CALLS = 8
/** Longest wait of a queued call, milliseconds, unless its deadline is longer. */
export const LONGEST_QUEUE_MS = 1_500
/** The platform may end a request without ending its call. A call this old is dropped from the count. */
const FORGOTTEN_AFTER_MS = 60_000

export interface Deadline {
  /** Aborts with a `TimeoutError`. Created when it is first read: without I/O by `fetch` none is needed. */
  readonly signal: AbortSignal
  /** As an abort of the signal. */
  onExpiry: ((reason: DOMException) => void) | undefined
  readonly isExpired: boolean
  /** After this the deadline does not expire. `answered`: the dependency has responded. */
  end(answered: boolean): void
}

interface OpenCall {
  readonly startMs: number
  /** Called for each response to a call that began before this one. */
  passed(): void
}

/**
 * Creates deadlines of `ms` milliseconds in which this isolate runs.
 *
 * A burst of requests, a garbage collection or a starved machine delays the moment at which an isolate
 * reads a response that has arrived. A plain timer counts that time against the dependency. Here a
 * deadline is a chain of timers, and a timer that fires late counts for no more than its own length. A
 * late isolate needs several turns of its event loop to read a response, so the steps are shorter then.
 * A call fails after `ms`, or after about twenty turns of the event loop without a response, whichever
 * takes longer.
 *
 * A burst also queues at the dependency, which can start with a call only after the calls before it.
 * From the eighth response to earlier calls on, each such response starts the deadline of a call anew,
 * up to 1.5 s in all. A dependency that responds late, always or sometimes, gains nothing by that: its
 * late calls fail, so they are no responses, and the prompt responses after a late call end soon.
 */
export function createDeadlines(ms: number): { start(): Deadline } {
  const stepMs = ms / STEPS
  const shortStepMs = stepMs / FINER
  const longestMs = Math.max(ms, LONGEST_QUEUE_MS)
  /** Oldest first. */
  const open = new Set<OpenCall>()

  function forgetDead(nowMs: number): void {
    for (const call of open) {
      if (nowMs - call.startMs < FORGOTTEN_AFTER_MS) return
      open.delete(call)
    }
  }

  return {
    start() {
      let controller: AbortController | undefined
      let expiry: DOMException | undefined
      const startMs = Date.now()
      let restMs = ms
      let waitedMs = 0
      let passedBy = 0
      let dueMs = 0
      let timer: ReturnType<typeof setTimeout>

      const call: OpenCall = {
        startMs,
        passed() {
          passedBy += 1
          if (passedBy >= QUEUE_CALLS) restMs = Math.min(ms, longestMs - waitedMs)
        },
      }
      function wait(forMs: number): void {
        restMs -= forMs
        waitedMs += forMs
        dueMs = Date.now() + forMs
        timer = setTimeout(fire, forMs)
      }
      function fire(): void {
        const isLate = Date.now() - dueMs >= shortStepMs
        if (restMs >= 1) wait(Math.min(restMs, isLate ? shortStepMs : stepMs))
        else expire(new DOMException('The deadline has passed', 'TimeoutError'))
      }
      function expire(reason: DOMException): void {
        expiry = reason
        controller?.abort(reason)
        deadline.onExpiry?.(reason)
      }
      forgetDead(startMs)
      open.add(call)
      wait(stepMs)
      const deadline: Deadline = {
        get signal() {
          controller ??= new AbortController()
          if (expiry !== undefined) controller.abort(expiry)
          return controller.signal
        },
        onExpiry: undefined,
        get isExpired() {
          return expiry !== undefined
        },
        end(answered) {
          clearTimeout(timer)
          open.delete(call)
          if (!answered) return
          // Calls that began within one step of each other may be sent in any order.
          for (const other of open) if (startMs <= other.startMs + stepMs) other.passed()
        },
      }
      return deadline
    },
  }
}
