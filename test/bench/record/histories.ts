/** Handwritten histories for the checker. */
import type {
  FaultEvent,
  HistoryEvent,
  RefreshEvent,
  RequestEvent,
  RevokeEvent,
} from '../../../bench/chaos/history.ts'
import type { Terms } from '../../../bench/record/terms.ts'

/** Limits of ten per second, with and without leases, and a staleness bound of half a second. */
export const TERMS: Terms = {
  boundMs: 500,
  graceMs: 300,
  processes: 2,
  limits: {
    leased: { limit: 10, windowMs: 1_000, lease: { max: 4, ttlMs: 200 } },
    strict: { limit: 10, windowMs: 1_000, lease: undefined },
  },
  routes: { free: [], leased: ['leased'], strict: ['strict'], both: ['leased', 'strict'] },
}

/** Default time of a request until the origin, and until the response. */
export const TO_ORIGIN_MS = 2
export const ANSWERED_MS = 4

let numbers = 0

/** Returns the events of an admitted request. `arriveMs` null: it did not reach the origin. */
export function request(
  invokeMs: number,
  {
    arriveMs = invokeMs + TO_ORIGIN_MS,
    ...more
  }: Partial<RequestEvent> & { readonly arriveMs?: number | null } = {},
): readonly HistoryEvent[] {
  numbers += 1
  const id = numbers
  const sent: RequestEvent = {
    kind: 'request',
    id,
    process: 0,
    route: 'strict',
    subject: 'alice',
    token: 'a',
    invokeMs,
    completeMs: invokeMs + ANSWERED_MS,
    status: 200,
    code: '',
    ...more,
  }
  return arriveMs === null ? [sent] : [sent, { kind: 'arrival', id, atMs: arriveMs }]
}

/** Returns the event of a request with another response, which did not reach the origin. */
export const refused = (
  invokeMs: number,
  status: number,
  more: Partial<RequestEvent> = {},
): readonly HistoryEvent[] =>
  request(invokeMs, {
    status,
    arriveMs: null,
    code: status === 503 ? 'dependency_unavailable' : '',
    ...more,
  })

export const revocation = (
  invokeMs: number,
  completeMs: number,
  more: Partial<RevokeEvent> = {},
): RevokeEvent => ({
  kind: 'revoke',
  process: 0,
  token: 'a',
  invokeMs,
  completeMs,
  status: 201,
  ...more,
})

export const fault = (
  name: string,
  fromMs: number,
  untilMs: number,
  processes: readonly number[] = [0, 1],
): FaultEvent => ({ kind: 'fault', name, processes, fromMs, untilMs })

/** Returns `count` groups of events. */
export const many = (
  count: number,
  eventsOf: (index: number) => readonly HistoryEvent[],
): readonly HistoryEvent[] => Array.from({ length: count }, (_, index) => eventsOf(index)).flat()

/** Returns the use of a refresh token that got a successor. */
export const refreshed = (
  invokeMs: number,
  token: string,
  successor: string,
  more: Partial<RefreshEvent> = {},
): RefreshEvent => ({
  ...{ kind: 'refresh', process: 0, family: 'f', purpose: 'use', token, successor, invokeMs },
  ...{ completeMs: invokeMs + ANSWERED_MS, status: 200, code: '' },
  ...more,
})
