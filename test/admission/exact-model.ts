/**
 * An exact window as docs/decisions/0035 describes it: the specification of the scripts' Lua, written
 * another way. Times are microseconds of the server's clock, whole numbers.
 */

const SHARES = 16
const STEPS = 8
const MAX_SHARES = 40

export interface ModelOptions {
  readonly limit: number
  readonly windowMicros: number
  /** For how long units count; anything but the window's length is wrong. */
  readonly horizonMicros?: number
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
export function createModel({ limit, windowMicros, horizonMicros = windowMicros }: ModelOptions) {
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

  function waitMicros(nowMicros: number, cost: number): number {
    const missing = Math.max(1, sum(shares) + cost - limit)
    for (const [index, { atMicros }] of shares.entries())
      if (sum(shares.slice(0, index + 1)) >= missing) return atMicros + windowMicros - nowMicros
    return windowMicros
  }

  return {
    /** A request that costs `cost`. */
    ask(nowMicros: number, cost: number): ModelAnswer {
      forget(nowMicros)
      const admitted = sum(shares) + cost <= limit
      if (admitted) take(nowMicros, cost)
      const left = Math.max(0, limit - sum(shares))
      return { admitted, left, waitMs: Math.ceil(waitMicros(nowMicros, cost) / 1000) }
    },
    shares: (): readonly Share[] => shares,
  }
}
