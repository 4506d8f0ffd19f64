/** What a run of a fleet is given, and what it counts. */
import type { LeaseTerms } from '../../src/access/admission/lease.ts'
import type { Caller, Kind } from './traffic.ts'

/** A limit of every route. */
export interface LimitTerms {
  readonly by: 'subject' | 'tenant'
  readonly limit: number
  readonly windowSeconds: number
}

/** A third of the gateways and of the masters end, and come back. */
export interface Outage {
  readonly atMs: number
  readonly forMs: number
  /** How long the lanes of a lost master have no master. */
  readonly failoverMs: number
}

export interface FleetOptions {
  readonly gateways: number
  /** Processes of one gateway. */
  readonly processes: number
  /** Requests of the whole fleet a second. */
  readonly rate: number
  readonly lanes: number
  /** Decides which lanes an outage affects. */
  readonly masters: number
  readonly kinds: readonly Kind[]
  readonly limits: readonly LimitTerms[]
  /** Undefined: no leases. */
  readonly lease: LeaseTerms | undefined
  /** 0: strict. */
  readonly maxStalenessMs: number
  readonly outage: Outage | undefined
  /** Whether tokens of services are revoked, one after the other. */
  readonly revokes: boolean
  /** Requests a second that are simulated. */
  readonly sampleRate: number
  /** Seconds that are counted, after those that are not. */
  readonly seconds: number
  readonly warmUpSeconds: number
  readonly seed: number
  /** Between a gateway and a master, one way, in milliseconds. */
  readonly latencyMs: number
  /** Gets each request: its caller, the number of the process, and milliseconds since the start. */
  readonly onRequest?: ((caller: Caller, process: number, atMs: number) => void) | undefined
}

/** The counts of one second. */
export interface Second {
  requests: number
  admitted: number
  /** Refused with 429. */
  limited: number
  /** Refused with 503. */
  unavailable: number
  /** Commands at the masters: admissions, renewals and refunds. */
  calls: number
  /** Units that count and that no request used, at the end: the mean of the services, as a part of the limit. */
  idle: number
}

export interface KindCounts {
  requests: number
  admitted: number
  limited: number
  /** Refused, because the token was revoked. */
  revoked: number
  unavailable: number
  /** Commands for its admissions and renewals, at all lanes. */
  commands: number
}
