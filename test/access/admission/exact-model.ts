/**
 * An exact window as decisions 0035 and 0037 describe it: the specification of the Lua scripts,
 * written independently. Times are whole microseconds of the server's clock.
 */

const SHARES = 16
const STEPS = 8
const MAX_SHARES = 40
/** A lease is at most this part of what is left above the reserve. */
const LEASE_PART = 4
/** This part of the limit is never leased. */
const RESERVE = 4
/** A new window is expected to receive at most this many times its current count. */
const FORECAST = 16

export interface ModelOptions {
  readonly limit: number
  readonly windowMicros: number
  /** How long units count. Any value except the window's length is a deliberate defect. */
  readonly horizonMicros?: number
  /** When a leased unit counts. Undefined: never. By default it counts at the end of its hold. */
  readonly leasedAt?: ((nowMicros: number, holdMicros: number) => number | undefined) | undefined
  /** How far ahead leasing looks, default 16. No value may let a window exceed its limit. */
  readonly forecast?: number
  /**
   * How long after the end of its hold a unit may be returned. Any value except the window is a
   * deliberate defect.
   */
  readonly returnMicros?: number
}

/** The fields of {@link LeaseRequest} that the model reads. */
export interface ModelLeaseRequest {
  readonly units: number
  readonly step: number
  readonly holdMicros: number
  readonly returned: number
  readonly returnedEndMicros: number
}

export interface ModelGrant {
  readonly units: number
  readonly endMicros: number
}

export interface ModelDecision {
  readonly admitted: boolean
  readonly left: number
  readonly waitMs: number
}

interface Share {
  readonly atMicros: number
  readonly units: number
}

const sum = (shares: readonly Share[]) => shares.reduce((total, { units }) => total + units, 0)

/** Creates an unused window. */
export function createModel({
  limit,
  windowMicros,
  horizonMicros = windowMicros,
  returnMicros = windowMicros,
  forecast = FORECAST,
  leasedAt = (nowMicros, holdMicros) => nowMicros + holdMicros,
}: ModelOptions) {
  let shares: Share[] = []

  function forget(nowMicros: number): void {
    shares = shares.filter(({ atMicros }) => atMicros + horizonMicros > nowMicros)
    const latest = nowMicros + windowMicros
    const ahead = sum(shares.filter(({ atMicros }) => atMicros > latest))
    shares = shares.filter(({ atMicros }) => atMicros <= latest)
    if (ahead > 0) shares.push({ atMicros: latest, units: ahead })
  }

  function take(nowMicros: number, cost: number): void {
    const last = shares.at(-1)
    if (last === undefined) return void shares.push({ atMicros: nowMicros, units: cost })
    const atMicros = Math.max(nowMicros, last.atMicros)
    const stepOf = (micros: number) => Math.floor(micros / (windowMicros / STEPS))
    const isSmall = last.units + cost <= Math.max(1, Math.floor(limit / SHARES))
    if ((isSmall && stepOf(last.atMicros) === stepOf(atMicros)) || shares.length >= MAX_SHARES)
      shares.splice(-1, 1, { atMicros, units: last.units + cost })
    else shares.push({ atMicros, units: cost })
  }

  function giveBack(units: number): void {
    let rest = units
    shares = shares.flatMap((share) => {
      const back = Math.min(rest, share.units)
      rest -= back
      return back === share.units ? [] : [{ ...share, units: share.units - back }]
    })
  }

  function lend(nowMicros: number, { units, step, holdMicros }: ModelLeaseRequest): ModelGrant {
    const ageMicros = Math.max(1, nowMicros - (shares[0]?.atMicros ?? nowMicros))
    const expected = sum(shares) * Math.max(1, Math.min(forecast, windowMicros / ageMicros))
    const most = Math.min(units, Math.floor((limit - expected - limit / RESERVE) / LEASE_PART))
    const granted = Math.max(0, Math.floor(most / step) * step)
    if (granted === 0) return { units: 0, endMicros: 0 }
    const atMicros = leasedAt(nowMicros, holdMicros)
    if (atMicros !== undefined) take(atMicros, granted)
    return { units: granted, endMicros: nowMicros + holdMicros }
  }

  function waitMicros(nowMicros: number, cost: number): number {
    const missing = Math.max(1, sum(shares) + cost - limit)
    for (const [index, { atMicros }] of shares.entries())
      if (sum(shares.slice(0, index + 1)) >= missing) return atMicros + windowMicros - nowMicros
    return windowMicros
  }

  return {
    /** Handles a request that costs `cost`, or a renewal if `cost` is 0. */
    admit(
      nowMicros: number,
      cost: number,
      ahead?: ModelLeaseRequest,
    ): ModelDecision & { readonly grant: ModelGrant } {
      forget(nowMicros)
      if (ahead !== undefined && ahead.returnedEndMicros + returnMicros > nowMicros)
        giveBack(ahead.returned)
      const admitted = sum(shares) + cost <= limit
      if (admitted && cost > 0) take(nowMicros, cost)
      const grant = admitted && ahead ? lend(nowMicros, ahead) : { units: 0, endMicros: 0 }
      const left = Math.max(0, limit - sum(shares))
      const waitMs = Math.ceil(waitMicros(nowMicros, cost) / 1000)
      return { admitted, left, waitMs, grant }
    },
    shares: (): readonly Share[] => shares,
  }
}
