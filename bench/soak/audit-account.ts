/** Compares the responses with the audit trail. */
import type { AuditRow } from './audit-trail.ts'
import type { Answered } from './ledger.ts'

/**
 * Events younger than this may be lost when their gateway is killed. They wait in a batch (50 ms),
 * then in the local queue, which is memory of the same process and delivers after a second.
 */
export const IN_MEMORY_MS = 5_000

/** Responses that were in a socket at that moment are read a little later. */
const ON_THE_WAY_MS = 500

/** The time at which a gateway was killed, in milliseconds since the epoch. */
export interface Death {
  readonly gateway: number
  readonly timeMs: number
}

export interface AuditAccount {
  readonly answered: number
  readonly events: number
  /** Requests with exactly one event of the same status. */
  readonly matched: number
  /** Requests without an event and without an explanation. */
  readonly lost: number
  readonly lostExamples: readonly string[]
  /** Requests without an event that a gateway answered in the last seconds before it was killed. */
  readonly diedWithGateway: number
  /** Requests without an event that `audit_lost` reported as lost. */
  readonly declaredLost: number
  /** Responses of a gateway that sheds load: these have no event each. */
  readonly shed: number
  readonly doubled: number
  /** Events with a different status than the response. */
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
  // `audit_lost` also counts shed requests. They must not explain other missing events.
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

/** Adds to each example the reason from the event of its request. */
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
