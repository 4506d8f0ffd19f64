/** Types of leases: units of a limit that an isolate takes in advance and spends without a call. */

/** The terms that the policy allows. */
export interface LeaseTerms {
  /** Units of one window that one isolate may hold. */
  readonly max: number
  /** How long the units may be spent, in milliseconds from when the isolate sent the call. */
  readonly ttlMs: number
}

/**
 * How much longer the server holds units than they may be spent, in milliseconds. The clock of an
 * isolate does not advance while it computes, so this much may pass between reading the clock and
 * admitting a request. The margin must also cover a clock that is set back or runs slow.
 */
export const LEASE_MARGIN_MS = 100

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
  /**
   * When the hold ends, in microseconds since the epoch by the server's clock. Only the server
   * interprets it.
   */
  readonly endMicros: number
}

/** Options of an account. */
export interface AccountOptions extends LeaseTerms {
  /** The length of the window. */
  readonly windowMs: number
  /** The cost of a request. */
  readonly cost: number
}

/**
 * The units of one window that an isolate holds: units to spend, and units to give back. All
 * `nowMs` and `sentMs` are from one clock, of which only differences count.
 */
export interface LeaseAccount {
  /** Counts a request, admitted or not. The expected use is derived from this count. */
  use(nowMs: number): void
  /** Returns the units that may be spent now. */
  held(nowMs: number): number
  /** Spends the cost of one request. Returns false if fewer units are held; then none are left. */
  spend(): boolean
  /**
   * Returns the units that a call for a request, sent now, should request as well. Undefined: none.
   */
  request(nowMs: number): LeaseRequest | undefined
  /** Returns what a call after the response requests and gives back. Undefined: not needed yet. */
  renewal(nowMs: number): LeaseRequest | undefined
  /**
   * Records that the window refused the call sent at `sentMs`. For one window length, no units are
   * requested.
   */
  refused(sentMs: number): void
  /** Applies the outcome of a request: a grant, or undefined if the outcome is unknown. */
  settle(request: LeaseRequest, grant: LeaseGrant | undefined, sentMs: number): void
  /** Stops spending the held units. The next renewal gives them back. */
  surrender(): void
}
