/** A gateway that is compared with others. */
import type { Backends } from '../stack/backends.ts'

export interface Grounds {
  readonly backends: Backends
  /** Private JWK Set of the issuer, JSON, for a gateway that is itself an issuer. */
  readonly signingKeys: string
  /** Public JWK Set of the issuer, JSON. */
  readonly jwks: string
  /** The same key in PEM (RFC 7468). */
  readonly publicKey: string
  readonly issuer: string
  /** Requests per subject in 60 s. Our Worker always uses a limit that is never reached. */
  readonly limit: number
  /** Temporary directory of one gateway; removed afterwards. */
  readonly directory: string
  /** Shared temporary directory for bundles that several gateways run. */
  readonly bundles: string
  readonly signal: AbortSignal
}

export interface Running {
  /** URL prefix of `/orders`, without a trailing slash. */
  readonly url: string
  /** The measured process. Its child processes are included. */
  readonly pid: number
  /** Such as `HAProxy 2.6.12`. */
  readonly version: string
  close(): Promise<void>
}

/** Kinds of requests that check a gateway before the measurement. */
export const PROBES = {
  good: 'a good request',
  missing: 'no token',
  forged: 'a forged token',
  expired: 'an expired token',
  revoked: 'a revoked token',
  powerless: 'a caller without the role',
  'bad-query': 'a bad query',
  ambiguous: 'an ambiguous path',
} as const
export type ProbeId = keyof typeof PROBES

export interface Peer {
  /** Kebab-case; part of the names of figures. */
  readonly id: string
  readonly title: string
  /** Whether the gateway may be missing; it is then skipped. */
  readonly optional: boolean
  readonly inQuick: boolean
  /** Whether it compiles code at run time and therefore needs a warm-up. */
  readonly compiles: boolean
  /** Its response statuses to probes. Default 200. */
  readonly refuses: Readonly<Partial<Record<ProbeId, number>>>
  /** Whether it sends the caller's subject to the origin in `X-Auth-Subject`. */
  readonly identifies: boolean
  /** Calls to Redis per request: minimum and maximum. */
  readonly redisCalls: readonly [least: number, most: number]
  /** Features that no single response shows, by the rows of the table. */
  readonly does: Readonly<Record<Feature, string>>
  /** Starts the gateway. Throws an `Error` of one line if it is missing or does not start. */
  start(grounds: Grounds): Promise<Running>
}

/** Rows of the feature table, after those that probes prove. */
export const FEATURES = {
  cachesTokens: 'caches verified tokens',
  revokes: 'revocation by subject, session, client, tenant; bans',
  limit: 'limit by subject',
  audit: 'audit event for each request',
  identity: 'sends the caller’s identity to the origin',
} as const
export type Feature = keyof typeof FEATURES

/** A gateway that verifies tokens itself and counts in its memory. */
export const IN_MEMORY = {
  optional: true,
  refuses: { missing: 401, forged: 401, expired: 401 },
  identifies: true,
  redisCalls: [0, 0],
  does: {
    cachesTokens: 'yes',
    revokes: 'no',
    limit: 'in its memory',
    audit: 'no',
    identity: 'subject',
  },
} as const satisfies Partial<Peer>
