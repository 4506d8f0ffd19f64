/**
 * Isolates that take units ahead of one window, as schedules drive them: calls that are late, lost or
 * repeated, clocks that stand still or are off, and isolates that end without a word. What an isolate
 * does is the gateway's own code; the window is its specification.
 */
import { LEASE_MARGIN_MS, type LeaseAccount, type LeaseAsk } from '../../src/admission/lease.ts'
import { createLeaseAccount } from '../../src/admission/lease-account.ts'
import { createModel, type ModelOptions } from './exact-model.ts'
import type { Outcome } from './schedules.ts'

/** What a call that is sent meets; of a renewal, which is sent once, `repeated` is `lost`. */
export type Fate = 'answered' | 'unsent' | 'lost' | 'repeated'

/** One thing that happens. */
export interface Happening {
  /** Microseconds since the one before. */
  readonly gap: number
  readonly isolate: number
  /** The isolate ends, and another one begins in its place. */
  readonly crashes: boolean
  readonly fate: Fate
  /** How long a call takes there, and its answer back, parts of a second. */
  readonly there: number
  readonly back: number
  /** By which part of the margin the isolate's clock lags, 0 to 1. */
  readonly lag: number
}

export interface World extends ModelOptions {
  readonly cost: number
  readonly max: number
  readonly ttlMs: number
  readonly isolates: number
  readonly happenings: readonly Happening[]
}

/** What an isolate may do wrong. */
export interface Wrongs {
  /** Renewals are sent again when nothing is heard of them. */
  readonly repeatsRenewals?: boolean
  /** How long isolates remember what may come back; anything but the window is wrong. */
  readonly windowMs?: number
  /** For which part of what they ask units are held; anything but 1 is wrong. */
  readonly heldShare?: number
}

export interface Lived {
  /** In the order of time. */
  readonly outcomes: readonly Outcome[]
  /** Requests that were admitted out of what an isolate held. */
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

/** Lets a world run to its end. */
export function live(
  world: World,
  { repeatsRenewals = false, heldShare = 1, ...wrongs }: Wrongs = {},
): Lived {
  const { cost, max, ttlMs, happenings } = world
  const { windowMs = world.windowMicros / 1000 } = wrongs
  const model = createModel(world)
  const outcomes: Outcome[] = []
  /** What is under way, by when it happens. */
  const due: { readonly atMicros: number; readonly run: (atMicros: number) => void }[] = []
  let [local, returned] = [0, 0]
  const begin = (): Isolate => ({
    account: createLeaseAccount({ cost, max, ttlMs, windowMs }),
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

  /** A call, from when it is sent to when its answer is taken in. */
  function send(
    { account }: Isolate,
    ask: LeaseAsk | undefined,
    { sentMs, nowMicros, units }: { sentMs: number; nowMicros: number; units: number },
    { fate, there, back }: Happening,
  ): void {
    const isRenewal = units === 0
    const ahead = ask && { ...ask, holdMicros: Math.floor(ask.holdMs * 1000 * heldShare) }
    const settle = (grant: { units: number; endMicros: number } | undefined) =>
      ask && account.settle(ask, grant, sentMs)
    const arriveMicros = nowMicros + Math.floor(there * MICROS_PER_SECOND)
    const isAgain = fate === 'repeated' && (!isRenewal || repeatsRenewals)
    const isLost = fate === 'lost' || (fate === 'repeated' && !isAgain)
    if (fate === 'unsent') {
      settle(undefined)
      return
    }
    const arrive = (atMicros: number, isHeard: boolean) => {
      const { admitted, grant } = model.ask(atMicros, units, ahead)
      // Nobody is answered whose call is lost: what was taken lies, and admitted is who is told so.
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
    // It never goes back.
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
      send(isolate, account.ask(sentMs), { sentMs, nowMicros, units: cost }, happening)
      const renewal = account.renewal(sentMs)
      returned += renewal?.returned ?? 0
      if (renewal !== undefined) send(isolate, renewal, { sentMs, nowMicros, units: 0 }, happening)
    }
  }
  runUntil(Number.POSITIVE_INFINITY)
  outcomes.sort((one, other) => one.atMicros - other.atMicros)
  return { outcomes, local, returned }
}
