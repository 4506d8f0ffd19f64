/** What an isolate holds of one window: units to spend, and units to give back. Pure; see 0037. */
import {
  type AccountOptions,
  LEASE_MARGIN_MS,
  type LeaseAccount,
  type LeaseAsk,
  type LeaseGrant,
} from './lease.ts'

/** A key that is asked less often than so in the life of a lease is asked about each time. */
const MIN_USES = 4
/** Of what was used in the life of a lease, so much is held for the next. */
const HEADROOM = 1.5
/** Renewed when this part of what is wanted, or of a lease's life, is left. */
const RENEW_AT = 1 / 2
/** A call that asks for units is taken for lost after this, and another one may ask. */
const ASKING_MS = 1_000

const NEVER = Number.NEGATIVE_INFINITY
/** Of what might come back. */
const NOTHING = { returned: 0, returnedEndMicros: 0 }

interface Lease {
  units: number
  readonly sentMs: number
  readonly endMicros: number
}

/**
 * Makes the account. A lease of units may be spent until `ttlMs` after the call that brought it was
 * SENT, which is no later than it was granted; the server holds its units for a margin longer. What
 * is not spent by then goes back with the next renewal, once: a renewal that gets no answer is not
 * repeated, and what it gave back is forgotten, so that less is admitted, and never more. What has been
 * held for a window's length is forgotten, too.
 *
 * Units ahead count longer than units that are taken when they are spent. So who is near the limit is
 * not to have any: nothing is asked for in the window after a refusal.
 */
export const createLeaseAccount = (options: AccountOptions): LeaseAccount => new Account(options)

/** A class, for there are thousands of them: closures would take twice the memory. */
class Account implements LeaseAccount {
  readonly #options: AccountOptions
  /** The oldest first. */
  #leases: Lease[] = []
  #returned = 0
  #returnedEndMicros = 0
  #returnedMs = 0
  #askedMs = NEVER
  /** Where less was granted than asked for, only time makes another renewal worth its call. */
  #shortMs = NEVER
  #refusedMs = NEVER
  /** The life of a lease that this is, and the units that were used in it and in the one before. */
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

  ask(nowMs: number): LeaseAsk | undefined {
    if (isWithin(this.#askedMs, ASKING_MS, nowMs)) return undefined
    this.#expire(nowMs)
    const units = this.#wanted(nowMs)
    return units > 0 ? this.#asking(units, nowMs, NOTHING) : undefined
  }

  renewal(nowMs: number): LeaseAsk | undefined {
    if (isWithin(this.#askedMs, ASKING_MS, nowMs)) return undefined
    this.#expire(nowMs)
    const units = this.#isDue(nowMs) ? this.#wanted(nowMs) : 0
    // With nothing held, nobody else would bring it back before it leaves the window by itself.
    const isBack = this.#returned > 0 && this.#leases.length === 0
    return units > 0 || isBack ? this.#asking(units, nowMs, this.#back(nowMs)) : undefined
  }

  refused(sentMs: number): void {
    this.#refusedMs = sentMs
  }

  settle({ units: asked }: LeaseAsk, grant: LeaseGrant | undefined, sentMs: number): void {
    this.#askedMs = NEVER
    if (grant === undefined || grant.units * 2 < asked) this.#shortMs = sentMs
    if (grant === undefined) return
    // Of two calls, one of which was taken for lost.
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

  /** What comes back with the call that is sent now. */
  #back(nowMs: number): typeof NOTHING {
    const [returned, returnedEndMicros] = [this.#returned, this.#returnedEndMicros]
    this.#returned = 0
    const isGood = returned > 0 && isWithin(this.#returnedMs, this.#options.windowMs, nowMs)
    return isGood ? { returned, returnedEndMicros } : NOTHING
  }

  #asking(units: number, nowMs: number, back: typeof NOTHING): LeaseAsk {
    const { cost: step, ttlMs } = this.#options
    this.#askedMs = nowMs
    return { units, step, holdMs: ttlMs + LEASE_MARGIN_MS, ...back }
  }

  #turn(nowMs: number): void {
    const at = Math.floor(nowMs / this.#options.ttlMs)
    if (at === this.#slot) return
    this.#previous = at === this.#slot + 1 ? this.#current : 0
    this.#current = 0
    this.#slot = at
  }

  /** Units that will be used in the life of a lease, if it goes on as it did. */
  #expected(nowMs: number): number {
    this.#turn(nowMs)
    return this.#current + this.#previous * (1 - (nowMs / this.#options.ttlMs - this.#slot))
  }

  /** What a call that is sent now should bring: more than of what is held will be of use. */
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
