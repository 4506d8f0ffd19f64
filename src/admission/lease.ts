/** The vocabulary of leases: units that an isolate takes ahead of a limit, to spend them unasked. */

/** What a policy allows. */
export interface LeaseTerms {
  /** Units that one isolate may hold of one window. */
  readonly max: number
  /** For how long it may spend them, milliseconds from when it sent the call that took them. */
  readonly ttlMs: number
}

/**
 * How much longer than they may be spent units are held: an isolate's clock stands still while it
 * computes, so between looking at the clock and admitting a request this much may pass. Whatever a
 * clock that is set back or runs slow adds has to fit in as well.
 */
export const LEASE_MARGIN_MS = 100

/** What a call asks of a window for later requests. */
export interface LeaseAsk {
  /** Units to be granted, at most. */
  readonly units: number
  /** What a request costs: no fraction of it is granted. */
  readonly step: number
  /** For how long the grant may be spent, and the margin, milliseconds. */
  readonly holdMs: number
  /** Units that were granted before and that nobody will spend any more. */
  readonly returned: number
  /** When the hold of the first of them ends, as the grant told; 0 where there are none. */
  readonly returnedEndMicros: number
}

/** What was granted. */
export interface LeaseGrant {
  /** 0: nothing. */
  readonly units: number
  /** When the hold ends, microseconds since the epoch by the server's clock: for the server alone. */
  readonly endMicros: number
}

/** What an account is made of. */
export interface AccountOptions extends LeaseTerms {
  /** The length of the window. */
  readonly windowMs: number
  /** What a request costs. */
  readonly cost: number
}

/**
 * What an isolate holds of one window: units to spend, and units to give back. Every `nowMs` and
 * `sentMs` is of one clock, of which only what has elapsed counts.
 */
export interface LeaseAccount {
  /** Counts a request in, admitted or not: what is expected follows from these. */
  use(nowMs: number): void
  /** Units that may be spent now. */
  held(nowMs: number): number
  /** Takes a request's cost of what is held. False: there was less, and now there is nothing. */
  spend(): boolean
  /** What a call that is sent now, for a request, asks for besides; undefined: nothing. */
  ask(nowMs: number): LeaseAsk | undefined
  /** What a call behind the answer asks for, and gives back, if there is need of one yet. */
  renewal(nowMs: number): LeaseAsk | undefined
  /** The window has refused a call that was sent then: for its length it is asked each time. */
  refused(sentMs: number): void
  /** What became of what was asked: a grant, or undefined where nobody can tell. */
  settle(ask: LeaseAsk, grant: LeaseGrant | undefined, sentMs: number): void
  /** Spends nothing more of what is held: it goes back with the next renewal. */
  surrender(): void
}
