/** Types of leases: units of a limit that an isolate takes in advance and spends without a call. */

/** The terms that the policy allows. */
export interface LeaseTerms {
  /** Units of one window that one isolate may hold. */
  readonly max: number
  /** How long the units may be spent, in milliseconds from when the isolate sent the call. */
  readonly ttlMs: number
}

/** What a call requests from a window for later requests. */
export interface LeaseRequest {
  /** Units to grant, at most. */
  readonly units: number
  /** The cost of a request. Grants are multiples of it. */
  readonly step: number
  /** How long the server holds the grant, including the margin, in milliseconds. */
  readonly holdMs: number
  /** Units of earlier grants that the isolate gives back unspent. */
  readonly returned: number
  /** When the first hold of the returned units ends, from the grant; 0 if none are returned. */
  readonly returnedEndMicros: number
}

/** The units that were granted. */
export interface LeaseGrant {
  /** 0: no units. */
  readonly units: number
  /** When the hold ends, by the server's clock. Only the server interprets it. */
  readonly endMicros: number
}
