/** Compares what was answered with what is on record. */
import type { AuditRow } from './audit-trail.ts'
import type { Answered } from './ledger.ts'

/**
 * An event that is younger than this when its gateway is killed may be gone with it: the batch that
 * it waits in (50 ms), and the local queue, which is memory of the same process and delivers after a second.
 */
export const IN_MEMORY_MS = 5_000

/** What was in a socket at that moment is read a little later. */
const ON_THE_WAY_MS = 500

/** A gateway was killed. Milliseconds since the epoch. */
export interface Death {
  readonly gateway: number
  readonly timeMs: number
}

export interface AuditAccount {
  readonly answered: number
  readonly events: number
  /** Answered requests with exactly one event of the same status. */
  readonly matched: number
  /** Without an event, though nothing accounts for it. */
  readonly lost: number
  readonly lostExamples: readonly string[]
  /** Without an event, answered in the last seconds of a gateway that was killed. */
  readonly diedWithGateway: number
  /** Without an event, and declared to be lost by `audit_lost`. */
  readonly declaredLost: number
  /** Answers of a gateway that sheds load: those have no event each. */
  readonly shed: number
  readonly doubled: number
  /** An event with another status than the answer had. */
  readonly different: number
}

const SHED_CODE = 'overloaded'
const MAX_EXAMPLES = 20

export function accountFor(
  answered: readonly Answered[],
  rows: readonly AuditRow[],
  deaths: readonly Death[],
): AuditAccount {
  const byRequest = new Map<string, AuditRow[]>()
  let declared = 0
  for (const row of rows) {
    declared += row.lost ?? 0
    const known = byRequest.get(row.request_id)
    if (known === undefined) byRequest.set(row.request_id, [row])
    else known.push(row)
  }
  let [matched, doubled, different, shed, diedWithGateway] = [0, 0, 0, 0, 0]
  const missing: string[] = []
  for (const request of answered) {
    const [event, ...more] = byRequest.get(request.requestId) ?? []
    if (event === undefined) {
      if (request.code === SHED_CODE) shed++
      else if (deaths.some((death) => tookAlong(death, request))) diedWithGateway++
      else
        missing.push(
          `${new Date(request.answeredMs).toISOString()} ${request.status} ${request.requestId}`,
        )
    } else if (more.length > 0) doubled++
    else if (event.status !== request.status) different++
    else matched++
  }
  // Those of shed requests are declared as well, and excuse no others.
  const declaredLost = Math.min(Math.max(0, declared - shed), missing.length)
  return {
    answered: answered.length,
    events: rows.length,
    ...{ matched, doubled, different, shed, diedWithGateway, declaredLost },
    lost: missing.length - declaredLost,
    lostExamples: missing.slice(0, MAX_EXAMPLES),
  }
}

function tookAlong({ gateway, timeMs }: Death, request: Answered): boolean {
  const ageMs = timeMs - request.answeredMs
  return request.gateway === gateway && ageMs >= -ON_THE_WAY_MS && ageMs <= IN_MEMORY_MS
}

/** Examples that name a request, with the reason that stands in its event. */
export function withReasons(
  examples: readonly string[],
  rows: readonly AuditRow[],
): readonly string[] {
  return examples.map((text) => {
    const [, requestId] = /\(([\w-]{36})\)/.exec(text) ?? []
    const event = rows.find(({ request_id }) => request_id === requestId)
    return event === undefined ? text : `${text} ${event.reason}`
  })
}
