/** What a run of a fleet is given, and what it counts. */
import type { LeaseTerms } from '../../src/access/admission/lease.ts'
import type { LaneCounts } from './servers.ts'
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

export interface FleetCounts {
  readonly sampledRate: number
  readonly callers: number
  readonly byKind: ReadonlyMap<Kind['id'], KindCounts>
  /** Of the sample, at all lanes. */
  readonly commands: LaneCounts
  /** By lane, of the sample. */
  readonly byLane: readonly LaneCounts[]
  /** Reads of the feed of one lane by one process, a second. */
  readonly feedReadsPerView: number
  readonly bytesPerAdmission: number
  readonly revocations: number
  /** The latest start of an admitted request, in milliseconds after the revocation returned. */
  readonly worstStalenessMs: number
  readonly lateAdmissions: number
  /** The most units of a window of its length, as a part of the limit. */
  readonly worstWindow: number
  /** Units of callers above their limit, as a part of what their limits allow. */
  readonly saturation: number
  /** Units that were leased, from the start on; of these, those that requests used and those that were given back. */
  readonly granted: number
  readonly spent: number
  readonly returned: number
  /** Units that count and that no request used: the most of any service and second, as a part of the limit. */
  readonly worstIdle: number
  /** Units that count in the windows of callers at the end. */
  readonly units: number
  readonly seconds: readonly Second[]
}
