/**
 * The events of a run, one line of JSON each, and the fault that was active at a time. All times are
 * from one monotonic clock. Pure.
 */

/** A request, from before it was sent until its response was complete. */
export interface RequestEvent {
  readonly kind: 'request'
  /** The request carries it to the origin. */
  readonly id: number
  readonly process: number
  readonly route: string
  readonly subject: string
  /** The `jti` of the request's token. */
  readonly token: string
  readonly invokeMs: number
  readonly completeMs: number
  /** 0: no response. */
  readonly status: number
  /** Code of a problem document; empty otherwise. */
  readonly code: string
}

/** A request reached the origin at this time. */
export interface ArrivalEvent {
  readonly kind: 'arrival'
  readonly id: number
  readonly atMs: number
}

/** An operator revoked a token. 201: revoked. Any other status: it may have been revoked. */
export interface RevokeEvent {
  readonly kind: 'revoke'
  readonly process: number
  readonly token: string
  readonly invokeMs: number
  readonly completeMs: number
  readonly status: number
}

/** A use of a refresh token, from before it was sent until its response was complete. */
export interface RefreshEvent {
  readonly kind: 'refresh'
  readonly process: number
  readonly family: string
  /** `open`: the login. `use`: by the client. `replay`: of a token whose successor was used. `end`: its revocation. */
  readonly purpose: 'open' | 'use' | 'replay' | 'end'
  /** The end of the text of the presented token, and of the one in the response. Empty: none. */
  readonly token: string
  readonly successor: string
  readonly invokeMs: number
  readonly completeMs: number
  /** 0: no response. */
  readonly status: number
  readonly code: string
}

export interface FaultEvent {
  readonly kind: 'fault'
  readonly name: string
  readonly processes: readonly number[]
  readonly fromMs: number
  readonly untilMs: number
}

/** Redis was killed and restarted without its data, or a replica without the last writes became the master. */
export interface LossEvent {
  readonly kind: 'loss'
  /** Only units of windows may be lost: revocations were answered after a replica had them. Default: all. */
  readonly only?: 'windows'
  readonly fromMs: number
  readonly untilMs: number
}

export type HistoryEvent =
  | RequestEvent
  | ArrivalEvent
  | RevokeEvent
  | RefreshEvent
  | FaultEvent
  | LossEvent

/** Events by kind, ordered by their start. */
export interface History {
  readonly requests: readonly RequestEvent[]
  readonly revocations: readonly RevokeEvent[]
  readonly refreshes: readonly RefreshEvent[]
  readonly faults: readonly FaultEvent[]
  readonly losses: readonly LossEvent[]
  /** The time at which each request first reached the origin, by its id. */
  readonly arrivals: ReadonlyMap<number, number>
}

export function historyOf(events: Iterable<HistoryEvent>): History {
  const all = [...events]
  const arrivals = new Map<number, number>()
  for (const event of all)
    if (event.kind === 'arrival')
      arrivals.set(event.id, Math.min(event.atMs, arrivals.get(event.id) ?? event.atMs))
  const of = <Kind extends HistoryEvent['kind']>(kind: Kind) =>
    all.filter((event): event is Extract<HistoryEvent, { kind: Kind }> => event.kind === kind)
  const invoked = (one: { invokeMs: number }, other: { invokeMs: number }) =>
    one.invokeMs - other.invokeMs
  const begun = (one: { fromMs: number }, other: { fromMs: number }) => one.fromMs - other.fromMs
  return {
    requests: of('request').sort(invoked),
    revocations: of('revoke').sort(invoked),
    refreshes: of('refresh').sort(invoked),
    faults: of('fault').sort(begun),
    losses: of('loss').sort(begun),
    arrivals,
  }
}

/** The interval in which a request was admitted. */
export interface Admission {
  readonly fromMs: number
  readonly untilMs: number
}

/**
 * Returns the interval, or undefined if the request was not admitted. A request at the origin was
 * admitted, whatever its response, and before its arrival there. So an arrival is more exact than
 * the response.
 */
export function admissionOf(
  { id, status, invokeMs, completeMs }: RequestEvent,
  arrivals: History['arrivals'],
): Admission | undefined {
  const arrivedMs = arrivals.get(id)
  if (arrivedMs === undefined && status !== 200) return undefined
  return { fromMs: invokeMs, untilMs: Math.min(completeMs, arrivedMs ?? completeMs) }
}

/** State without a fault. */
export const HEALTHY = 'healthy'
/** State after a fault, while a circuit breaker may still be open. */
export const RECOVERING = 'recovering'
/** State of an overloaded machine: neither a planned fault nor a defect of the gateway. */
export const STARVED = 'starved'

/** The longest open period of a circuit breaker, its jitter, and a timeout. */
const RECOVERY_MS = 7_000
const BUCKET_MS = 1_000

export type FaultsByTime = ReturnType<typeof faultsByTime>

/** Creates the index from faults ordered by their start. The latest active one counts. */
export function faultsByTime(faults: readonly FaultEvent[]) {
  const buckets = new Map<number, FaultEvent[]>()
  const bucketOf = (ms: number) => Math.floor(ms / BUCKET_MS)
  for (const fault of faults) {
    for (let at = bucketOf(fault.fromMs); at <= bucketOf(fault.untilMs); at++) {
      const known = buckets.get(at)
      if (known === undefined) buckets.set(at, [fault])
      else known.push(fault)
    }
  }

  function overlapping(fromMs: number, untilMs: number): readonly FaultEvent[] {
    const found: FaultEvent[] = []
    for (let at = bucketOf(fromMs); at <= bucketOf(untilMs); at++)
      for (const fault of buckets.get(at) ?? [])
        if (fault.fromMs <= untilMs && fault.untilMs >= fromMs) found.push(fault)
    return found
  }
  function lastOf(found: readonly FaultEvent[], process: number): FaultEvent | undefined {
    const own = found.filter(({ processes }) => processes.includes(process))
    return own.findLast(({ name }) => name !== STARVED) ?? own.at(-1)
  }

  return {
    /** Returns the active fault of a process; undefined if there is none. */
    at: (process: number, atMs: number) => lastOf(overlapping(atMs, atMs), process),
    /** Returns the fault that was active during a request or shortly before it. */
    touching: (process: number, fromMs: number, untilMs: number) =>
      lastOf(overlapping(fromMs - RECOVERY_MS, untilMs), process),
    /** Returns the names of the active faults of all processes; `healthy` if there is none. */
    anywhere(atMs: number): readonly string[] {
      const names = new Set(overlapping(atMs, atMs).map(({ name }) => name))
      if (names.size > 1) names.delete(STARVED)
      return names.size > 0 ? [...names] : [HEALTHY]
    },
  }
}
