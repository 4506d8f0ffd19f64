/** The account of one window in an isolate: units to spend and to give back. See decision 0037. */
import { isWithin } from '../../isolate/period.ts'
import type { LeaseGrant, LeaseRequest, LeaseTerms } from './lease.ts'
import type { LimitRule } from './limit.ts'

/**
 * How much longer the server holds units than they may be spent, in milliseconds. The clock of an
 * isolate does not advance while it computes, so this much may pass between reading the clock and
 * admitting a request. The margin must also cover a clock that is set back or runs slow.
 */
const LEASE_MARGIN_MS = 100
/** A window with fewer requests than this in the life of a lease gets no lease. */
const MIN_USES = 4
/** How much to hold, as a multiple of the use in the life of a lease. */
const HEADROOM = 1.5
/** Renew when this part of the wanted units, or of a lease's life, is left. */
const RENEW_AT = 1 / 2
/** After this time, a call that requested units counts as lost, and another may request units. */
const ANSWER_MS = 1_000

const NEVER = Number.NEGATIVE_INFINITY

export interface LeasedRule extends Pick<LimitRule, 'cost' | 'windowSeconds'> {
  readonly lease: LeaseTerms
}

interface Lease {
  units: number
  sentMs: number
  endMicros: number
}

/**
 * The units of one window that an isolate holds. A lease may be spent until `ttlMs` after its call
 * was SENT, which is not later than the grant. The server holds the units for a margin longer. The
 * next renewal gives unspent units back, once. A renewal without an answer is not repeated and its
 * returned units are dropped, so that fewer requests are admitted, never more. Units that were held
 * for the length of a window are dropped as well.
 *
 * Leased units count longer than units that are taken when they are spent. So a caller near its
 * limit must not lease: the account requests nothing for one window length after a refusal.
 *
 * All `nowMs` and `sentMs` are from one clock, of which only differences count. A class, because
 * there are thousands of accounts: closures would use twice the memory.
 */
export class LeaseAccount {
  readonly #rule: LeasedRule
  /** Oldest first. */
  #leases: Lease[] = []
  /** The units to give back, with the earliest times of their leases. */
  #unspent: Lease | undefined
  #requestedMs = NEVER
  /**
   * When a call last granted less than half of the requested units, or failed. Delays the next
   * renewal, because more units become free only with time.
   */
  #shortMs = NEVER
  #refusedMs = NEVER
  /** The current slot: time divided by the life of a lease. */
  #slot = 0
  /** The units used in the current and in the previous slot. */
  #current = 0
  #previous = 0

  constructor(rule: LeasedRule) {
    this.#rule = rule
  }

  /** Counts a request, admitted or not. The expected use is derived from this count. */
  use(nowMs: number): void {
    this.#turn(nowMs)
    this.#current += this.#cost
  }

  held(nowMs: number): number {
    this.#expire(nowMs)
    return this.#sum()
  }

  /** Spends the cost of one request. Returns false if fewer units are held; then none are left. */
  spend(): boolean {
    let due = this.#cost
    for (const lease of this.#leases) {
      const part = Math.min(due, lease.units)
      lease.units -= part
      due -= part
    }
    return due === 0
  }

  /** Returns the units that a call for a request, sent now, should request as well. */
  request(nowMs: number): LeaseRequest | undefined {
    if (isWithin(this.#requestedMs, ANSWER_MS, nowMs)) return undefined
    this.#expire(nowMs)
    const units = this.#wanted(nowMs)
    return units > 0 ? this.#requestOf(units, nowMs, undefined) : undefined
  }

  /** Returns what a call after the response requests and gives back. Undefined: not needed yet. */
  renewal(nowMs: number): LeaseRequest | undefined {
    if (isWithin(this.#requestedMs, ANSWER_MS, nowMs)) return undefined
    this.#expire(nowMs)
    const units = this.#isDue(nowMs) ? this.#wanted(nowMs) : 0
    const unspent = this.#unspent
    // Without a lease to renew, only this call returns the units before they leave the window.
    const onlyReturns = unspent !== undefined && this.#leases.length === 0
    if (units === 0 && !onlyReturns) return undefined
    this.#unspent = undefined
    return this.#requestOf(units, nowMs, unspent)
  }

  refused(sentMs: number): void {
    this.#refusedMs = sentMs
  }

  /** Applies the outcome of a request. An undefined grant means that the outcome is unknown. */
  settle({ units: requested }: LeaseRequest, grant: LeaseGrant | undefined, sentMs: number): void {
    this.#requestedMs = NEVER
    if (grant === undefined || grant.units * 2 < requested) this.#shortMs = sentMs
    if (grant === undefined) return
    const { endMicros } = grant
    // If a call that counted as lost was answered after all, two grants may exceed `max`.
    const units = Math.min(grant.units, this.#whole(this.#rule.lease.max - this.#sum()))
    this.#giveBack({ units: grant.units - units, sentMs, endMicros })
    if (units === 0) return
    this.#leases.push({ units, sentMs, endMicros })
    this.#leases.sort((one, other) => one.sentMs - other.sentMs)
  }

  /** Stops spending the held units. The next renewal gives them back. */
  surrender(): void {
    for (const lease of this.#leases) this.#giveBack(lease)
    this.#leases = []
  }

  get #cost(): number {
    return this.#rule.cost ?? 1
  }

  get #windowMs(): number {
    return this.#rule.windowSeconds * 1000
  }

  #sum(): number {
    let sum = 0
    for (const { units } of this.#leases) sum += units
    return sum
  }

  #whole(units: number): number {
    return Math.max(0, Math.floor(units / this.#cost) * this.#cost)
  }

  #expire(nowMs: number): void {
    const { ttlMs } = this.#rule.lease
    for (let first = this.#leases[0]; first !== undefined; first = this.#leases[0]) {
      if (first.units > 0 && isWithin(first.sentMs, ttlMs, nowMs, 0)) return
      this.#giveBack(first)
      this.#leases.shift()
    }
  }

  #giveBack({ units, sentMs, endMicros }: Lease): void {
    if (units === 0) return
    this.#unspent ??= { units: 0, sentMs, endMicros }
    this.#unspent.units += units
    this.#unspent.sentMs = Math.min(this.#unspent.sentMs, sentMs)
    this.#unspent.endMicros = Math.min(this.#unspent.endMicros, endMicros)
  }

  #requestOf(units: number, nowMs: number, unspent: Lease | undefined): LeaseRequest {
    this.#requestedMs = nowMs
    const isBack = unspent !== undefined && isWithin(unspent.sentMs, this.#windowMs, nowMs, 0)
    return {
      units,
      step: this.#cost,
      holdMs: this.#rule.lease.ttlMs + LEASE_MARGIN_MS,
      returned: isBack ? unspent.units : 0,
      returnedEndMicros: isBack ? unspent.endMicros : 0,
    }
  }

  #turn(nowMs: number): void {
    const at = Math.floor(nowMs / this.#rule.lease.ttlMs)
    if (at === this.#slot) return
    this.#previous = at === this.#slot + 1 ? this.#current : 0
    this.#current = 0
    this.#slot = at
  }

  /** Returns the units that will be used in the life of a lease if the present rate continues. */
  #expected(nowMs: number): number {
    this.#turn(nowMs)
    return this.#current + this.#previous * (1 - (nowMs / this.#rule.lease.ttlMs - this.#slot))
  }

  /** Returns the expected use, less the held units that will be spent before they expire. */
  #wanted(nowMs: number): number {
    const { max, ttlMs } = this.#rule.lease
    const expected = this.#expected(nowMs)
    const isRare = expected < MIN_USES * this.#cost
    if (isRare || isWithin(this.#refusedMs, this.#windowMs, nowMs)) return 0
    let useful = 0
    for (const { units, sentMs } of this.#leases) {
      const most = (expected * (sentMs + ttlMs - nowMs)) / ttlMs
      useful = Math.max(useful, Math.min(useful + units, most))
    }
    return this.#whole(Math.min(HEADROOM * expected - useful, max - this.#sum()))
  }

  #isDue(nowMs: number): boolean {
    const { max, ttlMs } = this.#rule.lease
    const partMs = ttlMs * RENEW_AT
    if (isWithin(this.#shortMs, partMs, nowMs)) return false
    const youngest = this.#leases.at(-1)
    if (youngest === undefined || !isWithin(youngest.sentMs, partMs, nowMs)) return true
    return this.#sum() < Math.min(HEADROOM * this.#expected(nowMs), max) * RENEW_AT
  }
}
