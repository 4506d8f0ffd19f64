/**
 * Simulates isolates that lease units of one window, driven by schedules: late, lost and repeated
 * calls, stopped and skewed clocks, and isolates that end abruptly. The isolates run the gateway's
 * own code; the window is its specification.
 */
import type { LeaseRequest } from '../../../src/access/admission/lease.ts'
import { LeaseAccount } from '../../../src/access/admission/lease-account.ts'
import { createModel, type ModelOptions } from './exact-model.ts'
import type { Outcome } from './schedules.ts'

const LEASE_MARGIN_MS = 100

/** What happens to a call. A renewal is sent once, so that `repeated` means `lost` for it. */
export type Fate = 'answered' | 'unsent' | 'lost' | 'repeated'

/** One event. */
export interface Happening {
  /** Microseconds since the previous event. */
  readonly gap: number
  readonly isolate: number
  /** The isolate ends, and a new one replaces it. */
  readonly crashes: boolean
  readonly fate: Fate
  /** The duration of a call and of its reply, as parts of a second. */
  readonly there: number
  readonly back: number
  /** The lag of the isolate's clock as a part of the margin, 0 to 1. */
  readonly lag: number
}

export interface World extends ModelOptions {
  readonly cost: number
  readonly max: number
  readonly ttlMs: number
  readonly isolates: number
  readonly happenings: readonly Happening[]
}

/** Deliberate defects of an isolate. */
export interface Wrongs {
  /** Renewals without an answer are sent again. */
  readonly repeatsRenewals?: boolean
  /** How long isolates may return units. Any value except the window is a deliberate defect. */
  readonly windowMs?: number
  /**
   * The part of the lifetime that units are held for. Any value except 1 is a deliberate defect.
   */
  readonly heldShare?: number
}

export interface Lived {
  /** In the order of time. */
  readonly outcomes: readonly Outcome[]
  /** Requests that were admitted from a lease. */
  readonly local: number
  readonly returned: number
}

interface Isolate {
  readonly account: LeaseAccount
  clockMs: number
}

const START_MICROS = 1e15
const MICROS_PER_SECOND = 1e6
const CLOCKS_APART_MS = 7_777

/** Runs a simulation to its end. */
export function live(
  world: World,
  { repeatsRenewals = false, heldShare = 1, ...wrongs }: Wrongs = {},
): Lived {
  const { cost, max, ttlMs, happenings } = world
  const { windowMs = world.windowMicros / 1000 } = wrongs
  const model = createModel(world)
  const outcomes: Outcome[] = []
  /** Calls in progress, ordered by time. */
  const due: { readonly atMicros: number; readonly run: (atMicros: number) => void }[] = []
  let [local, returned] = [0, 0]
  const begin = (): Isolate => ({
    account: new LeaseAccount({ cost, windowSeconds: windowMs / 1000, lease: { max, ttlMs } }),
    clockMs: 0,
  })
  const isolates = Array.from({ length: world.isolates }, begin)

  function at(atMicros: number, run: (atMicros: number) => void): void {
    const place = due.findIndex((other) => other.atMicros > atMicros)
    due.splice(place === -1 ? due.length : place, 0, { atMicros, run })
  }

  function runUntil(atMicros: number): void {
    for (let next = due[0]; next !== undefined && next.atMicros <= atMicros; next = due[0]) {
      due.shift()
      next.run(next.atMicros)
    }
  }

  /** Sends a call and schedules its arrival and its answer. */
  function send(
    { account }: Isolate,
    leaseRequest: LeaseRequest | undefined,
    { sentMs, nowMicros, units }: { sentMs: number; nowMicros: number; units: number },
    { fate, there, back }: Happening,
  ): void {
    const isRenewal = units === 0
    const ahead = leaseRequest && {
      ...leaseRequest,
      holdMicros: Math.floor(leaseRequest.holdMs * 1000 * heldShare),
    }
    const settle = (grant: { units: number; endMicros: number } | undefined) =>
      leaseRequest && account.settle(leaseRequest, grant, sentMs)
    const arriveMicros = nowMicros + Math.floor(there * MICROS_PER_SECOND)
    const isAgain = fate === 'repeated' && (!isRenewal || repeatsRenewals)
    const isLost = fate === 'lost' || (fate === 'repeated' && !isAgain)
    if (fate === 'unsent') {
      settle(undefined)
      return
    }
    const arrive = (atMicros: number, isHeard: boolean) => {
      const { admitted, grant } = model.admit(atMicros, units, ahead)
      // A lost call counts in Redis, but its caller has no answer and is not admitted.
      if (!isHeard) return
      if (!isRenewal) outcomes.push({ atMicros, admitted })
      at(atMicros + Math.floor(back * MICROS_PER_SECOND), () => {
        settle(grant)
        if (!admitted) account.refused(sentMs)
      })
    }
    at(arriveMicros, (atMicros) => arrive(atMicros, !isAgain && !isLost))
    if (isAgain) at(arriveMicros + 10_000, (atMicros) => arrive(atMicros, true))
    if (isLost) at(arriveMicros + 250_000, () => settle(undefined))
  }

  let nowMicros = START_MICROS
  for (const happening of happenings) {
    nowMicros += happening.gap
    runUntil(nowMicros)
    const index = happening.isolate % world.isolates
    if (happening.crashes) isolates[index] = begin()
    const isolate = isolates[index] as Isolate
    const lagMs = happening.lag * LEASE_MARGIN_MS
    // The clock never goes back.
    isolate.clockMs = Math.max(
      isolate.clockMs,
      Math.floor(nowMicros / 1000 - lagMs) + index * CLOCKS_APART_MS,
    )
    const { account, clockMs: sentMs } = isolate
    if (account.held(sentMs) >= cost && account.spend()) {
      account.use(sentMs)
      local += 1
      outcomes.push({ atMicros: nowMicros, admitted: true })
      const renewal = account.renewal(sentMs)
      returned += renewal?.returned ?? 0
      if (renewal !== undefined) send(isolate, renewal, { sentMs, nowMicros, units: 0 }, happening)
    } else {
      account.use(sentMs)
      send(isolate, account.request(sentMs), { sentMs, nowMicros, units: cost }, happening)
      const renewal = account.renewal(sentMs)
      returned += renewal?.returned ?? 0
      if (renewal !== undefined) send(isolate, renewal, { sentMs, nowMicros, units: 0 }, happening)
    }
  }
  runUntil(Number.POSITIVE_INFINITY)
  outcomes.sort((one, other) => one.atMicros - other.atMicros)
  return { outcomes, local, returned }
}
