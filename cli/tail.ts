/** Which events of the audit trail are new to somebody who keeps asking for the latest. */

export interface TrailEvent {
  readonly id: string
  /** RFC 3339. */
  readonly time: string
  readonly method?: string
  readonly route?: string | null
  readonly decision?: string
  readonly actor?: { readonly client: string | null }
}

export interface Tail {
  /** What to ask for next: events from then on, RFC 3339. */
  since(): string
  /** The events among `page` that were not there before, oldest first. */
  unseen<Event extends TrailEvent>(page: readonly Event[]): readonly Event[]
}

/**
 * Events reach the trail a second or two after their requests, and not in order: what is asked for
 * goes back that far, and every event is told once.
 */
const LATENESS_MS = 30_000

const TRAIL_ROUTE = '/-/admin/audit'

/** Whether a client was let read the trail: the tail's own reads would be news to it without end. */
export function isReadOfTrail({ method, route, decision, actor }: TrailEvent, client: string) {
  const isRead = method === 'GET' && route === TRAIL_ROUTE && decision === 'allow'
  return isRead && actor?.client === client
}

/** A tail that begins at `since` (milliseconds since the epoch). */
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
