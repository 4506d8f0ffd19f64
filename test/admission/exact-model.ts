/**
 * An exact window as docs/decisions/0035 and 0037 describe it: the specification of the scripts' Lua, written
 * another way. Times are microseconds of the server's clock, whole numbers.
 */

const SHARES = 16
const STEPS = 8
const MAX_SHARES = 40
/** A lease is at most this part of what will be left above the reserve. */
const LEASE_PART = 4
/** And this part of the limit is never lent. */
const RESERVE = 4
/** A window that has just begun is expected to hold so many times as much, at most. */
const FORECAST = 16

export interface ModelOptions {
  readonly limit: number
  readonly windowMicros: number
  /** For how long units count; anything but the window's length is wrong. */
  readonly horizonMicros?: number
  /** When a lease counts as taken, instead of at the end of its hold; undefined: not at all. */
  readonly leasedAt?: ((nowMicros: number, holdMicros: number) => number | undefined) | undefined
  /** How far ahead lending looks, default 16: whatever is lent, no window may be exceeded. */
  readonly forecast?: number
  /** Until how long after the end of its hold a unit may come back; anything but a window is wrong. */
  readonly returnMicros?: number
}

/** As {@link LeaseAsk} has it. */
export interface ModelAsk {
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

export interface ModelAnswer {
  readonly admitted: boolean
  readonly left: number
  readonly waitMs: number
}

interface Share {
  readonly atMicros: number
  readonly units: number
}

const sum = (shares: readonly Share[]) => shares.reduce((total, { units }) => total + units, 0)

/** Makes a window that nothing was taken of. */
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

  function lend(nowMicros: number, { units, step, holdMicros }: ModelAsk): ModelGrant {
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
    /** A request that costs `cost`, or a renewal: 0. */
    ask(
      nowMicros: number,
      cost: number,
      ahead?: ModelAsk,
    ): ModelAnswer & { readonly grant: ModelGrant } {
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
