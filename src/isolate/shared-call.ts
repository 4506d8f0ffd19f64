/** A call to the origin that one request makes and other requests wait for. */
import { Unavailable } from '../errors.ts'
import type { CollectedBody } from './collect.ts'

/**
 * A call counts as in progress for this long after the last heartbeat of its request, milliseconds.
 */
export const LEASE_MS = 3_000
/** Interval between heartbeats. */
const BEAT_MS = 500

/** A response as data, for requests other than the one that received it. */
export interface SharedAnswer {
  readonly status: number
  readonly statusText: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: CollectedBody | null
}

/** The result of a shared call for the requests that wait. */
export type Outcome =
  | { readonly kind: 'answered'; readonly answer: SharedAnswer }
  /** The origin failed. */
  | { readonly kind: 'failed'; readonly error: Unavailable }
  /** The response must not be shared: each waiting request calls the origin itself. */
  | { readonly kind: 'private' }
  /**
   * The leading request ended without a result: the first waiting request that notices takes over.
   */
  | { readonly kind: 'abandoned' }

export interface SharedCall {
  /** Reports whether the leading request sent a heartbeat within {@link LEASE_MS}. */
  isAlive(): boolean
  /** Undefined while the call is in progress. */
  readonly outcome: Outcome | undefined
  /** True once another request waits for this call. */
  isFollowed: boolean
  /** The call that replaces an abandoned one. Waiting requests follow it, even if it has ended. */
  successor: SharedCall | undefined
  /** Bytes of the response that may be kept in memory for other requests. */
  reservedBytes: number
  /** Ends the call. Only the first outcome counts. */
  end(outcome: Outcome): void
}

/**
 * Begins a shared call. The request that begins it must end it. If the platform ends that request
 * first, the heartbeat stops, and waiting requests see the lease expire. Requests that wait for
 * `predecessor` then wait for this call.
 */
export function beginCall(now: () => number, predecessor: SharedCall | undefined): SharedCall {
  let aliveUntilMs = now() + LEASE_MS
  const beat = setInterval(() => {
    aliveUntilMs = now() + LEASE_MS
  }, BEAT_MS)
  let ended: Outcome | undefined
  const call: SharedCall = {
    isAlive: () => now() < aliveUntilMs,
    get outcome() {
      return ended
    },
    isFollowed: predecessor?.isFollowed ?? false,
    successor: undefined,
    reservedBytes: 0,
    end(outcome) {
      clearInterval(beat)
      ended ??= outcome
    },
  }
  if (predecessor !== undefined) predecessor.successor = call
  return call
}

/**
 * Copies a failure for another request, without its cause, which may belong to the first request.
 */
export const failureFor = ({ dependency, fault, ...rest }: Unavailable): Unavailable =>
  new Unavailable(dependency, fault, {
    retryAfterSeconds: rest.retryAfterSeconds,
    shortCircuited: rest.shortCircuited,
  })
