/**
 * The account of one window in an isolate: units to spend, and units to give back. Pure. See
 * docs/decisions/0037.
 */
import {
  type AccountOptions,
  LEASE_MARGIN_MS,
  type LeaseAccount,
  type LeaseGrant,
  type LeaseRequest,
} from './lease.ts'

/**
 * A window with fewer requests than this in the life of a lease gets no lease: each request calls
 * the store.
 */
const MIN_USES = 4
/** How much to hold, as a multiple of the use in the life of a lease. */
const HEADROOM = 1.5
/** Renew when this part of the wanted units, or of a lease's life, is left. */
const RENEW_AT = 1 / 2
/** After this time, a call that requested units counts as lost, and another may request units. */
const ANSWER_MS = 1_000

const NEVER = Number.NEGATIVE_INFINITY
/** No units to give back. */
const NOTHING = { returned: 0, returnedEndMicros: 0 }

interface Lease {
  units: number
  readonly sentMs: number
  readonly endMicros: number
}

/**
 * Creates the account. A lease may be spent until `ttlMs` after its call was SENT, which is not
 * later than the grant. The server holds the units for a margin longer. The next renewal gives
 * unspent units back, once. A renewal without an answer is not repeated and its returned units are
 * dropped, so that fewer requests are admitted, never more. Units that were held for the length of
 * a window are dropped as well.
 *
 * Leased units count longer than units that are taken when they are spent. So a caller near its
 * limit must not lease: the account requests nothing for one window length after a refusal.
 */
export const createLeaseAccount = (options: AccountOptions): LeaseAccount => new Account(options)

/** A class, because there are thousands of accounts: closures would use twice the memory. */
class Account implements LeaseAccount {
  readonly #options: AccountOptions
  /** Oldest first. */
  #leases: Lease[] = []
  #returned = 0
  #returnedEndMicros = 0
  #returnedMs = 0
  #requestedMs = NEVER
  /**
   * When a call last granted less than half of the requested units, or failed. Delays the next
   * renewal, because more units become free only with time.
   */
  #shortMs = NEVER
  #refusedMs = NEVER
  /**
   * The current slot (time divided by the life of a lease), and the units used in it and in the
   * previous slot.
   */
  #slot = 0
  #current = 0
  #previous = 0

  constructor(options: AccountOptions) {
    this.#options = options
  }

  use(nowMs: number): void {
    this.#turn(nowMs)
    this.#current += this.#options.cost
  }

  held(nowMs: number): number {
    this.#expire(nowMs)
    return this.#sum()
  }

  spend(): boolean {
    let due = this.#options.cost
    for (const lease of this.#leases) {
      const part = Math.min(due, lease.units)
      lease.units -= part
      due -= part
    }
    return due === 0
  }

  request(nowMs: number): LeaseRequest | undefined {
    if (isWithin(this.#requestedMs, ANSWER_MS, nowMs)) return undefined
    this.#expire(nowMs)
    const units = this.#wanted(nowMs)
    return units > 0 ? this.#requestOf(units, nowMs, NOTHING) : undefined
  }

  renewal(nowMs: number): LeaseRequest | undefined {
    if (isWithin(this.#requestedMs, ANSWER_MS, nowMs)) return undefined
    this.#expire(nowMs)
    const units = this.#isDue(nowMs) ? this.#wanted(nowMs) : 0
    // Without a lease to renew, only this call returns the units before they leave the window.
    const isBack = this.#returned > 0 && this.#leases.length === 0
    return units > 0 || isBack ? this.#requestOf(units, nowMs, this.#back(nowMs)) : undefined
  }

  refused(sentMs: number): void {
    this.#refusedMs = sentMs
  }

  settle({ units: requested }: LeaseRequest, grant: LeaseGrant | undefined, sentMs: number): void {
    this.#requestedMs = NEVER
    if (grant === undefined || grant.units * 2 < requested) this.#shortMs = sentMs
    if (grant === undefined) return
    // If a call that counted as lost was answered after all, two grants may exceed `max`.
    const units = Math.min(grant.units, this.#whole(this.#options.max - this.#sum()))
    this.#giveBack({ units: grant.units - units, sentMs, endMicros: grant.endMicros })
    if (units === 0) return
    this.#leases.push({ units, sentMs, endMicros: grant.endMicros })
    this.#leases.sort((one, other) => one.sentMs - other.sentMs)
  }

  surrender(): void {
    for (const lease of this.#leases) this.#giveBack(lease)
    this.#leases = []
  }

  #sum(): number {
    let sum = 0
    for (const { units } of this.#leases) sum += units
    return sum
  }

  #whole(units: number): number {
    const { cost } = this.#options
    return Math.max(0, Math.floor(units / cost) * cost)
  }

  #expire(nowMs: number): void {
    const { ttlMs } = this.#options
    for (let first = this.#leases[0]; first !== undefined; first = this.#leases[0]) {
      if (first.units > 0 && isWithin(first.sentMs, ttlMs, nowMs)) return
      this.#giveBack(first)
      this.#leases.shift()
    }
  }

  #giveBack({ units, endMicros, sentMs }: Lease): void {
    if (units === 0) return
    const isFirst = this.#returned === 0
    this.#returned += units
    this.#returnedEndMicros = isFirst ? endMicros : Math.min(this.#returnedEndMicros, endMicros)
    this.#returnedMs = isFirst ? sentMs : Math.min(this.#returnedMs, sentMs)
  }

  /** Returns the units that the call sent now gives back, and forgets them. */
  #back(nowMs: number): typeof NOTHING {
    const [returned, returnedEndMicros] = [this.#returned, this.#returnedEndMicros]
    this.#returned = 0
    const isGood = returned > 0 && isWithin(this.#returnedMs, this.#options.windowMs, nowMs)
    return isGood ? { returned, returnedEndMicros } : NOTHING
  }

  #requestOf(units: number, nowMs: number, back: typeof NOTHING): LeaseRequest {
    const { cost: step, ttlMs } = this.#options
    this.#requestedMs = nowMs
    return { units, step, holdMs: ttlMs + LEASE_MARGIN_MS, ...back }
  }

  #turn(nowMs: number): void {
    const at = Math.floor(nowMs / this.#options.ttlMs)
    if (at === this.#slot) return
    this.#previous = at === this.#slot + 1 ? this.#current : 0
    this.#current = 0
    this.#slot = at
  }

  /** Returns the units that will be used in the life of a lease if the present rate continues. */
  #expected(nowMs: number): number {
    this.#turn(nowMs)
    return this.#current + this.#previous * (1 - (nowMs / this.#options.ttlMs - this.#slot))
  }

  /**
   * Returns the units that a call sent now should request: the expected use, less the held units
   * that will be spent before they expire.
   */
  #wanted(nowMs: number): number {
    const { cost, max, ttlMs, windowMs } = this.#options
    const expected = this.#expected(nowMs)
    if (expected < MIN_USES * cost || isWithin(this.#refusedMs, windowMs, nowMs)) return 0
    let useful = 0
    for (const { units, sentMs } of this.#leases) {
      const most = (expected * (sentMs + ttlMs - nowMs)) / ttlMs
      useful = Math.max(useful, Math.min(useful + units, most))
    }
    return this.#whole(Math.min(HEADROOM * expected - useful, max - this.#sum()))
  }

  #isDue(nowMs: number): boolean {
    const { max, ttlMs } = this.#options
    const partMs = ttlMs * RENEW_AT
    if (isWithin(this.#shortMs, partMs, nowMs)) return false
    const youngest = this.#leases.at(-1)
    if (youngest === undefined || !isWithin(youngest.sentMs, partMs, nowMs)) return true
    return this.#sum() < Math.min(HEADROOM * this.#expected(nowMs), max) * RENEW_AT
  }
}

const isWithin = (thenMs: number, ms: number, nowMs: number): boolean =>
  nowMs >= thenMs && nowMs - thenMs < ms
