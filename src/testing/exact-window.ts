/** An exact window in memory, see docs/decisions/0035. `exact-window.lua` is the one in Redis. */

/** A share contains at most this fraction (1/16) of the limit, and at least one unit. */
const SHARES = 16
/** A share covers at most this fraction (1/8) of the window's length. */
const STEPS = 8
/** The maximum number of shares of a window. */
const MAX_SHARES = 40

/** Units that were taken together. They count for a window's length after the last of them. */
interface Share {
  readonly atMicros: number
  readonly units: number
}

interface WindowState {
  /** Units left; never negative. */
  readonly remaining: number
  /** Milliseconds until more units are free, enough for another request if one does not fit now. */
  readonly waitMs: number
}

export type ExactWindow = ReturnType<typeof createExactWindow>

/** Creates an unused window. Times are whole microseconds since the epoch. */
export function createExactWindow(first: number, windowSeconds: number) {
  const windowMicros = windowSeconds * 1_000_000
  let limit = first
  let shares: Share[] = []

  const used = () => shares.reduce((sum, { units }) => sum + units, 0)
  const stepOf = (micros: number) => Math.floor(micros / (windowMicros / STEPS))

  function forget(nowMicros: number): void {
    shares = shares.filter(({ atMicros }) => atMicros + windowMicros > nowMicros)
    // A share is more than a window ahead only if the clock was set back.
    const latest = nowMicros + windowMicros
    const ahead = shares.filter(({ atMicros }) => atMicros > latest)
    if (ahead.length === 0) return
    const units = ahead.reduce((sum, share) => sum + share.units, 0)
    shares = [...shares.slice(0, -ahead.length), { atMicros: latest, units }]
  }

  function waitMicros(nowMicros: number, cost: number): number {
    let missing = Math.max(1, used() + cost - limit)
    for (const { atMicros, units } of shares) {
      missing -= units
      if (missing <= 0) return atMicros + windowMicros - nowMicros
    }
    return windowMicros
  }

  return {
    /** Changes the limit, for requests from now on. */
    resize(present: number): void {
      limit = present
    },

    /** Reports whether a request that costs `cost` fits now. */
    fits(nowMicros: number, cost: number): boolean {
      forget(nowMicros)
      return used() + cost <= limit
    },

    /** Takes the cost of a request that {@link fits}. */
    take(nowMicros: number, cost: number): void {
      const last = shares.at(-1)
      const atMicros = Math.max(nowMicros, last?.atMicros ?? nowMicros)
      const isOneShare =
        last !== undefined &&
        (shares.length >= MAX_SHARES ||
          (last.units + cost <= Math.max(1, Math.floor(limit / SHARES)) &&
            stepOf(last.atMicros) === stepOf(atMicros)))
      if (isOneShare) shares.pop()
      shares.push({ atMicros, units: isOneShare ? last.units + cost : cost })
    },

    /** Returns the state for a request that costs `cost`. */
    state(nowMicros: number, cost: number): WindowState {
      forget(nowMicros)
      const waitMs = Math.ceil(waitMicros(nowMicros, cost) / 1000)
      return { remaining: Math.max(0, limit - used()), waitMs }
    },
  }
}
