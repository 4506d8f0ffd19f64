/** A call to the origin that one request makes and others wait for. */
import { Unavailable } from '../errors.ts'
import type { CollectedBody } from './collect.ts'

/** How long a call is believed to be under way after its request was last seen, milliseconds. */
export const LEASE_MS = 3_000
/** How often a request that calls is seen. */
const BEAT_MS = 500

/** An answer as data, for requests other than the one that got it. */
export interface SharedAnswer {
  readonly status: number
  readonly statusText: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: CollectedBody | null
}

/** What those who waited are told. */
export type Outcome =
  | { readonly kind: 'answered'; readonly answer: SharedAnswer }
  /** The origin failed. */
  | { readonly kind: 'failed'; readonly error: Unavailable }
  /** There is an answer, for the one who asked alone: everybody else asks as well. */
  | { readonly kind: 'private' }
  /** Nobody asks any more: whoever sees it first may. */
  | { readonly kind: 'abandoned' }

export interface SharedCall {
  /** Whether the request that makes the call has been seen within {@link LEASE_MS}. */
  isAlive(): boolean
  /** Undefined while it is under way. */
  readonly outcome: Outcome | undefined
  /** Set once somebody waits for it. */
  isFollowed: boolean
  /** The call that those who wait for an abandoned one wait for instead, even if it has ended. */
  successor: SharedCall | undefined
  /** How much of the answer may be held for others, bytes. */
  reservedBytes: number
  /** Ends it. What comes after the first time is not heard. */
  end(outcome: Outcome): void
}

/**
 * Begins one. The request that does must end it; if the platform ends that request first, nothing
 * renews the lease, and those who wait see it run out. Who waited for `predecessor` waits for this one.
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

/** A failure for another request than the one that saw it: its cause may be tied to that one. */
export const failureFor = ({ dependency, fault, ...rest }: Unavailable): Unavailable =>
  new Unavailable(dependency, fault, {
    retryAfterSeconds: rest.retryAfterSeconds,
    unasked: rest.unasked,
  })
