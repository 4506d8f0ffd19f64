/** Deadlines for the calls of one isolate to one dependency. They pass only while this isolate runs. */
import { createProgressList, type ProgressEntry, type ProgressList } from './progress-list.ts'

/** A deadline is a chain of at least so many timers. */
const STEPS = 5
/** After a timer that fired late, the next step is this many times shorter. */
const FINER = 5
/** After so many responses to earlier calls, a call counts as queued at the dependency. */
const QUEUE_CALLS = 8
/** Longest wait of a queued call, milliseconds, unless its deadline is longer. */
const LONGEST_QUEUE_MS = 1_500
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
  const open: OpenCalls = createProgressList()
  return {
    start() {
      const call = new OpenCall(ms, open)
      forgetDead(open, call.startMs)
      open.add(call)
      return call
    },
  }
}

type OpenCalls = ProgressList<OpenCall>

function forgetDead(open: OpenCalls, nowMs: number): void {
  for (let call = open.oldest; call !== undefined; call = open.oldest) {
    if (nowMs - call.startMs < FORGOTTEN_AFTER_MS) return
    open.remove(call)
  }
}

/** One object for each call, without closures: there are thousands a second. */
class OpenCall implements Deadline, ProgressEntry<OpenCall> {
  older: OpenCall | undefined
  newer: OpenCall | undefined
  onExpiry: Deadline['onExpiry']
  readonly startMs = Date.now()
  readonly #ms: number
  readonly #open: OpenCalls
  #restMs: number
  #waitedMs = 0
  #dueMs = 0
  #passedBy = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #controller: AbortController | undefined
  #expiry: DOMException | undefined

  constructor(ms: number, open: OpenCalls) {
    this.#ms = ms
    this.#open = open
    this.#restMs = ms
    this.#wait(ms / STEPS)
  }

  get signal() {
    this.#controller ??= new AbortController()
    if (this.#expiry !== undefined) this.#controller.abort(this.#expiry)
    return this.#controller.signal
  }

  get isExpired() {
    return this.#expiry !== undefined
  }

  end(answered: boolean) {
    clearTimeout(this.#timer)
    this.#open.remove(this)
    if (!answered) return
    // Calls that began within one step of each other may be sent in any order.
    const firstMs = this.startMs - this.#ms / STEPS
    for (let call = this.#open.newest; call !== undefined; call = call.older)
      if (call.startMs >= firstMs) call.#passed()
      else return
  }

  /** Counts a response to a call that began before this one. */
  #passed() {
    this.#passedBy += 1
    if (this.#passedBy < QUEUE_CALLS) return
    this.#restMs = Math.min(this.#ms, Math.max(this.#ms, LONGEST_QUEUE_MS) - this.#waitedMs)
  }

  #wait(forMs: number) {
    this.#restMs -= forMs
    this.#waitedMs += forMs
    this.#dueMs = Date.now() + forMs
    this.#timer = setTimeout(OpenCall.#fire, forMs, this)
  }

  static #fire(call: OpenCall) {
    const stepMs = call.#ms / STEPS
    const shortStepMs = stepMs / FINER
    const isLate = Date.now() - call.#dueMs >= shortStepMs
    if (call.#restMs >= 1) call.#wait(Math.min(call.#restMs, isLate ? shortStepMs : stepMs))
    else call.#expire(new DOMException('The deadline has passed', 'TimeoutError'))
  }

  #expire(reason: DOMException) {
    this.#expiry = reason
    this.#controller?.abort(reason)
    this.onExpiry?.(reason)
  }
}
