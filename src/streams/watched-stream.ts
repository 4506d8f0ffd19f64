/** One open response or WebSocket, and when it ends. */

import type { Principal } from '../access/principal.ts'
import { loginEndMs } from '../access/tokens/login.ts'
import { Denied, logKind, type ProblemError } from '../errors.ts'
import type { LoginDemand } from '../problems/step-up.ts'
import { DEFAULT_CLOCK_TOLERANCE_SECONDS } from '../validators/issuer.ts'

/** How the streams of one route are checked. */
export interface StreamTerms {
  /**
   * An open stream ends at most this many milliseconds after a revocation or a ban. 0: it ends only at
   * its expiry.
   */
  readonly recheckMs: number
  /** A check that fails is repeated for this many milliseconds, and then ends the stream. */
  readonly graceMs: number
  /** Whether a download that makes progress may finish. */
  readonly finishes: boolean
  /** What the login of the caller must be: a stream ends when it gets too old. Default: any. */
  readonly demand?: LoginDemand | undefined
}

export interface StreamCaller {
  readonly principal: Principal
  /** The client's normalized address. */
  readonly address: string
}

/** What a runtime offers of a stream while it is open. */
export interface StreamHandle {
  /** Ends the stream so that it does not look complete. */
  cut(error: ProblemError): void
  /** Returns the number of bytes that have passed. Default: none. */
  readonly bytes?: (() => number) | undefined
}

/** The response or the WebSocket of one request, which may be short. */
export interface OpenStream {
  /** Why the stream was ended. Undefined: it was not. */
  readonly ended: ProblemError | undefined
  /** Whether the stream may end by itself although it must end, as long as its bytes pass. */
  finishes: boolean
  /** The stream is open, and may end in time. Not called for a response that is complete at once. */
  opened(stream: StreamHandle): void
  /** The stream has ended by itself. */
  closed(): void
  /**
   * The answer of a request with effects has begun, perhaps after the stream should have ended. It has
   * some seconds to arrive: a client without it would send the request again.
   */
  answered(): void
  /**
   * Settles like `sending`, which takes at most `timeoutMs`, or rejects when the stream must end before.
   * A response that arrives later is given to `discard`.
   */
  during<Answer>(
    sending: Promise<Answer>,
    timeoutMs: number,
    discard: (late: Answer) => void,
  ): Promise<Answer>
}

export interface StreamRequest extends StreamCaller {
  readonly terms: StreamTerms
  /** Checks a request with a relation, whose name is `relation`. Rejects as `admit` does. */
  readonly readmit?: { readonly relation: string; check(): Promise<void> } | undefined
  /** Called once after the stream was ended. Not called during the wait for a response. */
  readonly onEnd: (error: ProblemError) => void
}

/** All streams of one caller from one address. A relation has its own group. */
export interface StreamGroup extends StreamCaller {
  readonly relation: string | undefined
  check: (() => Promise<void>) | undefined
  /** When the last check that admitted the caller was sent. */
  checkedMs: number
  triedMs: number
  isDue: boolean
  /** The shortest interval of its streams. */
  intervalMs: number
  seenMs: number
  failingSinceMs: number | undefined
  failure: ProblemError | undefined
  refusal: ProblemError | undefined
}

/** How long an answer may take after the stream should have ended. */
const ANSWER_MS = 5_000
/** A check is due after this part of the time in which it must have ended the stream. */
export const INTERVAL_PART = 3 / 4

/** Starts and stops the visits of a stream. */
export interface StreamTimers {
  start(stream: WatchedStream): void
  stop(stream: WatchedStream): void
  /** Milliseconds since the epoch, plus the steps by which the clock was set back. */
  now(): number
}

export class WatchedStream implements OpenStream {
  readonly request: StreamRequest
  readonly admittedMs: number
  readonly intervalMs: number
  readonly endMs: number
  /** Why it ends at this time. */
  readonly endError: ProblemError
  readonly #timers: StreamTimers
  ended: ProblemError | undefined
  finishes: boolean
  group: StreamGroup | undefined
  timer: ReturnType<typeof setTimeout> | undefined
  /** Its place among the streams of the timer that it shares. Undefined: not started. */
  place: number | undefined
  nextMs: number
  #stream: StreamHandle | undefined
  #isWaiting = false
  /** At the last visit since it must end. Before the first one, no byte is no stall. */
  #passedBytes = -1
  #untilMs = 0

  /** `aheadMs`: how far `admittedMs` is ahead of the clock. */
  constructor(request: StreamRequest, admittedMs: number, aheadMs: number, timers: StreamTimers) {
    this.request = request
    this.admittedMs = admittedMs
    this.#timers = timers
    this.finishes = request.terms.finishes
    this.intervalMs = request.terms.recheckMs * INTERVAL_PART
    const { principal } = request
    const { demand = {} } = request.terms
    const expiryMs = endMsOf(principal, admittedMs - aheadMs)
    const loginMs = loginEndMs(principal, demand)
    this.endMs = Math.min(expiryMs, loginMs) + aheadMs
    this.endError = loginMs < expiryMs ? tooOld(principal, demand) : EXPIRED
    const checkMs = this.intervalMs === 0 ? Number.POSITIVE_INFINITY : admittedMs + this.intervalMs
    this.nextMs = Math.min(this.endMs, checkMs)
  }

  get isOpen(): boolean {
    return this.#stream !== undefined
  }

  opened(stream: StreamHandle): void {
    this.#stream = stream
    if (this.nextMs !== Number.POSITIVE_INFINITY) this.#timers.start(this)
  }

  closed(): void {
    if (this.#stream === undefined) return
    this.#stream = undefined
    this.#timers.stop(this)
  }

  end(error: ProblemError): void {
    const stream = this.#stream
    const isWaiting = this.#isWaiting
    this.closed()
    this.ended = error
    try {
      stream?.cut(error)
      if (!isWaiting) this.request.onEnd(error)
    } catch (failure) {
      // The other streams must end nevertheless.
      logKind('open streams', failure)
    }
  }

  answered(): void {
    const nowMs = this.#timers.now()
    if (nowMs >= this.nextMs) this.nextMs = nowMs + ANSWER_MS
  }

  /**
   * Returns until when the stream may go on although it must end: a while after its last byte. It is visited
   * more often than that, because timers that were set before fire as well.
   */
  progressUntilMs(nowMs: number, pauseMs: number): number {
    const bytes = this.finishes ? this.#stream?.bytes?.() : undefined
    if (bytes === undefined) return 0
    if (bytes > this.#passedBytes) this.#untilMs = nowMs + pauseMs
    this.#passedBytes = bytes
    return this.#untilMs
  }

  during<Answer>(
    sending: Promise<Answer>,
    timeoutMs: number,
    discard: (late: Answer) => void,
  ): Promise<Answer> {
    if (this.nextMs - this.admittedMs > timeoutMs) return sending
    return new Promise((resolve, reject) => {
      this.#isWaiting = true
      this.opened({ cut: reject })
      const arrived = () => {
        this.#isWaiting = false
        this.closed()
      }
      sending.then(
        (answer) => {
          arrived()
          if (this.ended === undefined) resolve(answer)
          else discard(answer)
        },
        (error: unknown) => {
          arrived()
          reject(error)
        },
      )
    })
  }
}

/** As `stepUp` refuses the next request. */
const tooOld = ({ signIn }: Principal, demand: LoginDemand): Denied =>
  new Denied(
    signIn === undefined
      ? { code: 'insufficient_user_authentication', check: 'auth_time_old', demand }
      : { code: 'sign_in_required', check: 'step_up', demand },
  )

const EXPIRED = new Denied({ code: 'token_rejected', check: 'exp' })

/**
 * Returns when the streams of a caller end, in milliseconds since the epoch. A token that has expired
 * but is still accepted, because clocks differ, ends with that tolerance.
 */
function endMsOf({ expiresAtSeconds }: Principal, nowMs: number): number {
  const endMs = expiresAtSeconds * 1_000
  return endMs > nowMs ? endMs : endMs + DEFAULT_CLOCK_TOLERANCE_SECONDS * 1_000
}

/** Returns why a stream must end now. */
export function findEnd(
  { endMs, endError, group, request }: WatchedStream,
  nowMs: number,
): ProblemError | undefined {
  if (nowMs >= endMs) return endError
  if (group?.refusal !== undefined) return group.refusal
  const failingMs = nowMs - (group?.failingSinceMs ?? nowMs)
  return group?.failure !== undefined && failingMs >= request.terms.graceMs
    ? group.failure
    : undefined
}
