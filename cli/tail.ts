/** Selects the events of the audit trail that are new since the last poll. */

export interface TrailEvent {
  readonly id: string
  /** RFC 3339. */
  readonly time: string
  readonly method?: string
  readonly route?: string | null
  readonly decision?: string
  readonly actor?: { readonly client: string | null }
}

export interface EventPage {
  readonly events: readonly TrailEvent[]
  readonly cursor?: string
}

export interface Tail {
  /** Returns the start time of the next query, RFC 3339. */
  since(): string
  /** Returns the events of `page` that were not returned before, oldest first. */
  unseen<Event extends TrailEvent>(page: readonly Event[]): readonly Event[]
}

/**
 * Events reach the trail a second or two after their requests, and out of order. Each query starts
 * this much before the newest event, and each event is returned once.
 */
const LATENESS_MS = 30_000

const TRAIL_ROUTE = '/-/admin/audit'

/**
 * Reports whether an event is an allowed read of the trail by `client`. Otherwise each poll of the
 * tail would produce a new event for the tail to print.
 */
export function isReadOfTrail({ method, route, decision, actor }: TrailEvent, client: string) {
  const isRead = method === 'GET' && route === TRAIL_ROUTE && decision === 'allow'
  return isRead && actor?.client === client
}

/** Creates a tail that starts at `since` (milliseconds since the epoch). */
export function createTail(since: number): Tail {
  let newestMs = since
  let seen = new Map<string, number>()
  const horizonMs = () => Math.max(since, newestMs - LATENESS_MS)
  return {
    since: () => new Date(horizonMs()).toISOString(),
    unseen(page) {
      const fresh = page
        .filter(({ id }) => !seen.has(id))
        .sort((a, b) => Date.parse(a.time) - Date.parse(b.time) || (a.id < b.id ? -1 : 1))
      for (const { id, time } of fresh) {
        seen.set(id, Date.parse(time))
        newestMs = Math.max(newestMs, Date.parse(time))
      }
      seen = new Map([...seen].filter(([, timeMs]) => timeMs >= horizonMs()))
      return fresh
    },
  }
}
