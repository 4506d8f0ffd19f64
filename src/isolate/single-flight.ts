/**
 * One call at a time for many requests of an isolate: one request makes the call, and the others
 * wait for its outcome.
 *
 * On Workers a request must not await the promise of another request. Requests share only data
 * here, and a waiting request polls. If the platform ends the request that makes the call, no code
 * of it runs any more. Its lease then expires, and a waiting request makes the call instead.
 */
import { Unavailable } from '../errors.ts'
import { isWithin } from './period.ts'
import { sleep } from './timers.ts'

export interface Flight<Outcome> {
  /** Undefined while the call is in progress, and if its request has ended without an outcome. */
  readonly outcome: Outcome | undefined
  /** Whether another request waits for this call, or for one that it replaces. Set by `follow`. */
  isFollowed: boolean
  /** The call that began after this one, even if it has ended. Set by `begin`. */
  successor: Flight<Outcome> | undefined
  /** False if the call has ended, or its lease has expired. */
  isInProgress(): boolean
  /**
   * Only the first end counts. Undefined: without an outcome, so that a waiting request makes the
   * call instead. `keep`: `latest` still returns the call, until the next one begins; default false.
   */
  end(outcome: Outcome | undefined, keep?: boolean): void
}

interface Followed<Outcome> {
  /** The call that ended, or a call that has begun for this request, which must make and end it. */
  readonly flight: Flight<Outcome>
  /** Undefined: this request must make the call. */
  readonly outcome: Outcome | undefined
}

interface SingleFlightOptions {
  readonly now: () => number
  /** How long a call counts as in progress after its start, or after its last heartbeat. */
  readonly leaseMs: number
  /** Interval of heartbeats, for calls that may take longer than a lease. Default: none. */
  readonly heartbeatMs?: number
  /** Shortest pause between two polls. Default 20. */
  readonly minPollMs?: number
  /** Longest pause between two polls. In between, it is an eighth of the time waited. Default 250. */
  readonly maxPollMs?: number
}

/** Calls of different keys are independent. */
export function createSingleFlight<Outcome>({
  now,
  leaseMs,
  heartbeatMs,
  minPollMs = 20,
  maxPollMs = 250,
}: SingleFlightOptions) {
  const calls = new Map<string, Flight<Outcome>>()
  let sweptAtMs = now()

  /** Removes the calls of requests that the platform has ended. */
  function sweep(nowMs: number): void {
    if (isWithin(sweptAtMs, leaseMs, nowMs)) return
    sweptAtMs = nowMs
    for (const [key, flight] of calls) if (!flight.isInProgress()) calls.delete(key)
  }

  /** Begins a call, after the calls that the request has followed. The request must end it. */
  function begin(key: string, predecessor?: Flight<Outcome>): Flight<Outcome> {
    const startMs = now()
    sweep(startMs)
    let aliveMs = startMs
    let isEnded = false
    let outcome: Outcome | undefined
    const heartbeat =
      heartbeatMs === undefined
        ? undefined
        : setInterval(() => {
            aliveMs = now()
          }, heartbeatMs)
    const flight: Flight<Outcome> = {
      get outcome() {
        return outcome
      },
      isFollowed: predecessor?.outcome === undefined && predecessor?.isFollowed === true,
      successor: undefined,
      isInProgress: () => !isEnded && isWithin(aliveMs, leaseMs, now()),
      end(result, keep = false) {
        if (isEnded) return
        isEnded = true
        outcome = result
        if (heartbeat !== undefined) clearInterval(heartbeat)
        if (!keep && calls.get(key) === flight) calls.delete(key)
      },
    }
    if (predecessor !== undefined) predecessor.successor = flight
    calls.set(key, flight)
    return flight
  }

  return {
    begin,
    /** Returns the call of a key that began last. Its lease may have expired. */
    latest: (key: string): Flight<Outcome> | undefined => calls.get(key),
    /**
     * Waits for a call of this key. If it has no outcome, waits for the call that has replaced it, or
     * begins that call for this request. `onPoll` is called before each pause with the time waited so
     * far, in milliseconds. If it throws, the wait ends.
     */
    async follow(
      key: string,
      first: Flight<Outcome>,
      onPoll?: (waitedMs: number) => void,
    ): Promise<Followed<Outcome>> {
      const sinceMs = now()
      let flight = first
      for (;;) {
        flight.isFollowed = true
        const { outcome, successor } = flight
        if (outcome !== undefined) return { flight, outcome }
        if (flight.isInProgress()) {
          const waitedMs = now() - sinceMs
          onPoll?.(waitedMs)
          await sleep(Math.min(Math.max(waitedMs / 8, minPollMs), maxPollMs))
        } else if (successor === undefined) {
          return { flight: begin(key, flight), outcome: undefined }
        } else {
          flight = successor
        }
      }
    },
  }
}

/** Copies a failure for another request, without its cause, which may belong to the first one. */
export const copyOfFailure = ({
  dependency,
  fault,
  retryAfterSeconds,
  shortCircuited,
}: Unavailable): Unavailable =>
  new Unavailable(dependency, fault, { retryAfterSeconds, shortCircuited })
