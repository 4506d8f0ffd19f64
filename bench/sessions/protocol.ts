/** What the sessions' scenario and the processes that send for it say to each other. */
import type { JWK } from 'jose'

/** In the order in which they come. */
export const STEPS = ['login', 'verify', 'logout', 'again'] as const
/** `again`: the access token is shown once more, after its session has ended. */
export type Step = (typeof STEPS)[number]

/** Who vouches for users, and who logs them in. */
export interface Cast {
  /** `jwk` is private. */
  readonly issuer: { readonly issuer: string; readonly audience: string; readonly jwk: JWK }
  readonly client: { readonly id: string; readonly secret: string }
}

export interface Setup extends Cast {
  /** Of the gateways that take part. */
  readonly urls: readonly string[]
  /** Nobody else's subject begins so. */
  readonly prefix: string
  /** Number of the first user; no two senders have the same. */
  readonly first: number
  readonly users: number
  /** Calls with each user's token. */
  readonly verifies: number
  /** Connections, at most. */
  readonly connections: number
  /** Requests that are under way at once where a step goes as fast as it is answered. */
  readonly width: number
}

export type Question =
  | { readonly kind: 'prepare'; readonly setup: Setup }
  /** Requests a second to offer; undefined: as fast as they are answered. */
  | { readonly kind: 'step'; readonly step: Step; readonly perSecond: number | undefined }

/** What came of one step. */
export interface StepOutcome {
  /** From when a request was due to its last byte; of answers that were right. */
  readonly latenciesMs: readonly number[]
  /** Requests that were told that there is no capacity (503), or got no answer. */
  readonly failed: number
  /** Answers that were neither: there must be none. */
  readonly wrong: number
  /** Some of them, without their bodies. */
  readonly examples: readonly string[]
  /** From the first request to the last answer. */
  readonly seconds: number
  /** Users who have a session afterwards. */
  readonly sessions: number
}
