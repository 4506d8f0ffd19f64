/** What a gateway has to be to be measured beside others. */
import type { Backends } from '../backends.ts'

/** What every one of them is given. */
export interface Grounds {
  readonly backends: Backends
  /** Private JWKS of the issuer, JSON, for the gateway that is an issuer itself. */
  readonly signingKeys: string
  /** Public JWKS of the issuer, JSON. */
  readonly jwks: string
  /** The same key, PEM (RFC 7468). */
  readonly publicKey: string
  /** Issuer and audience of the tokens. */
  readonly issuer: string
  /** Requests of a subject within 60 s; ours is as roomy whatever stands here. */
  readonly limit: number
  /** Scratch of one gateway alone; removed afterwards. */
  readonly directory: string
  /** Scratch of all, for bundles that several of them run. */
  readonly bundles: string
  readonly signal: AbortSignal
}

export interface Running {
  /** What stands before `/orders`, without a slash at the end. */
  readonly url: string
  /** It, and all processes that it started, are what is measured. */
  readonly pid: number
  /** Such as `HAProxy 2.6.12`. */
  readonly version: string
  close(): Promise<void>
}

/** What a request is that a gateway is tried with before it is measured. */
export type ProbeId =
  | 'good'
  | 'missing'
  | 'forged'
  | 'expired'
  | 'revoked'
  | 'powerless'
  | 'bad-query'
  | 'ambiguous'

export interface Contestant {
  /** Kebab-case; figures are named after it. */
  readonly id: string
  readonly title: string
  /** Whether it has to be there: what is not, is skipped. */
  readonly optional: boolean
  readonly inQuick: boolean
  /** Whether it compiles code while it runs, so that only warm it is what it is. */
  readonly compiles: boolean
  /** The statuses that it answers probes with; 200 where it is not named. */
  readonly refuses: Readonly<Partial<Record<ProbeId, number>>>
  /** Whether it tells the origin who asks, in `X-Auth-Subject`. */
  readonly identifies: boolean
  /** Calls to Redis for each request: exactly so many, or between two numbers. */
  readonly redisCalls: readonly [least: number, most: number]
  /** What cannot be seen in a single answer, by the rows of the table. */
  readonly does: Readonly<Record<Feature, string>>
  /** Throws an `Error` of one line where it is not there, or does not start. */
  start(grounds: Grounds): Promise<Running>
}

/** Rows of the table that says what each does, after those that probes prove. */
export const FEATURES = {
  remembers: 'remembers verified tokens',
  cutOffs: 'cut-offs (subject, session, client, tenant), bans',
  limit: 'limit by subject, counted',
  audit: 'audit event for each request',
  tells: 'tells the origin who asks',
} as const
export type Feature = keyof typeof FEATURES
