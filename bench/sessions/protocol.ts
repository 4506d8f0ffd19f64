/** Messages between the scenario `sessions` and its senders. */
import type { JWK } from 'jose'

export const STEPS = ['login', 'verify', 'logout', 'again'] as const
/** `again`: sends the access token after its session has ended. */
export type Step = (typeof STEPS)[number]

/** The identity provider, and the application that logs users in. */
export interface Cast {
  /** `jwk` is private. */
  readonly issuer: { readonly issuer: string; readonly audience: string; readonly jwk: JWK }
  readonly client: { readonly id: string; readonly secret: string }
}

export interface Setup extends Cast {
  readonly urls: readonly string[]
  /** Prefix of the subjects of this run. */
  readonly prefix: string
  readonly first: number
  readonly users: number
  /** Calls with each user's token. */
  readonly verifies: number
  readonly connections: number
  /** Concurrent requests of a step without a rate. */
  readonly width: number
}

export type Question =
  | { readonly kind: 'prepare'; readonly setup: Setup }
  /** Offered requests per second; undefined: a closed load. */
  | { readonly kind: 'step'; readonly step: Step; readonly perSecond: number | undefined }

export interface StepOutcome {
  /** Latencies of correct responses, from when the request was due. */
  readonly latenciesMs: readonly number[]
  /** Requests with a 503, or without a response. */
  readonly failed: number
  /** Number of wrong responses. There must be none. */
  readonly wrong: number
  /** Some wrong responses, without their bodies. */
  readonly examples: readonly string[]
  /** Time from the first request to the last response. */
  readonly seconds: number
  /** Number of users with a session afterwards. */
  readonly sessions: number
}
