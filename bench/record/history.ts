/** What a recorded run writes down: a line of JSON for each event. All times are of one monotonic clock. */

/** A request, from before it was sent to when its answer was whole. */
export interface RequestEvent {
  readonly kind: 'request'
  /** Goes with it to the origin. */
  readonly id: number
  readonly process: number
  readonly route: string
  readonly subject: string
  /** The `jti` of its token. */
  readonly token: string
  readonly invokeMs: number
  readonly completeMs: number
  /** 0: there was no answer. */
  readonly status: number
  /** Of a problem document; empty otherwise. */
  readonly code: string
}

/** A request has reached the origin, which noticed it then. */
export interface ArrivalEvent {
  readonly kind: 'arrival'
  readonly id: number
  readonly atMs: number
}

/** An operator has revoked a token: 201. Anything else: it may have been revoked, or not. */
export interface RevokeEvent {
  readonly kind: 'revoke'
  readonly process: number
  readonly token: string
  readonly invokeMs: number
  readonly completeMs: number
  readonly status: number
}

/** A fault was on. */
export interface FaultEvent {
  readonly kind: 'fault'
  readonly name: string
  /** Whom it concerned. */
  readonly processes: readonly number[]
  readonly fromMs: number
  readonly untilMs: number
}

/** Redis was killed, and began again with nothing. */
export interface LossEvent {
  readonly kind: 'loss'
  readonly fromMs: number
  readonly untilMs: number
}

export type HistoryEvent = RequestEvent | ArrivalEvent | RevokeEvent | FaultEvent | LossEvent

/** Events by their kind, in the order of when they began. */
export interface History {
  readonly requests: readonly RequestEvent[]
  readonly revocations: readonly RevokeEvent[]
  readonly faults: readonly FaultEvent[]
  readonly losses: readonly LossEvent[]
  /** When each request first reached the origin, by its id. */
  readonly arrivals: ReadonlyMap<number, number>
}

/** Sorts events. */
export function historyOf(events: Iterable<HistoryEvent>): History {
  const requests: RequestEvent[] = []
  const revocations: RevokeEvent[] = []
  const faults: FaultEvent[] = []
  const losses: LossEvent[] = []
  const arrivals = new Map<number, number>()
  for (const event of events) {
    if (event.kind === 'request') requests.push(event)
    else if (event.kind === 'revoke') revocations.push(event)
    else if (event.kind === 'fault') faults.push(event)
    else if (event.kind === 'loss') losses.push(event)
    else arrivals.set(event.id, Math.min(event.atMs, arrivals.get(event.id) ?? event.atMs))
  }
  requests.sort((one, other) => one.invokeMs - other.invokeMs)
  revocations.sort((one, other) => one.invokeMs - other.invokeMs)
  faults.sort((one, other) => one.fromMs - other.fromMs)
  losses.sort((one, other) => one.fromMs - other.fromMs)
  return { requests, revocations, faults, losses, arrivals }
}

/** When a request was admitted: some time between these two. */
export interface Admission {
  readonly fromMs: number
  readonly untilMs: number
}

/**
 * Undefined: it was not admitted. Whoever reaches the origin was, whatever the answer; and before it
 * arrived there, so an arrival says more of when than the answer does.
 */
export function admissionOf(
  { id, status, invokeMs, completeMs }: RequestEvent,
  arrivals: History['arrivals'],
): Admission | undefined {
  const arrivedMs = arrivals.get(id)
  if (arrivedMs === undefined && status !== 200) return undefined
  return { fromMs: invokeMs, untilMs: Math.min(completeMs, arrivedMs ?? completeMs) }
}
