/** The live tail of decisions: a stream of server-sent events, and the scripts of the console. */
import { type CommandGroup, groupCommands } from '../../audit/command-events.ts'
import type { AuditEvent } from '../../audit/event.ts'
import { Denied } from '../../errors.ts'
import { NO_STORE } from '../../http/response-headers.ts'
import { visible } from '../../problems/visible.ts'
import { auditPage, filtersOf } from './decision-query.ts'
import { eventStream } from './event-stream.ts'
import { callerOfEvent, DECISION_WORDS, withOthers } from './event-table.ts'
import { CONSOLE_PATH, COPY_SCRIPT_PATH, pathTo, SCRIPT_PATH, TAIL_PATH } from './layout.ts'
import type { Desk, PageDefinition } from './page.ts'
import { COPY_SCRIPT, SCRIPT } from './script.ts'

const POLL_MS = 2_000
/** Events arrive a second or two after their decision, and not in its order. */
const WINDOW_MS = 30_000
/** A poll reads at most so many pages of so many events. */
const PAGES = 5
const EVENTS = '200'
const MAX_SEEN = 2_000
/** A browser that was away for longer does not get the decisions of before. */
const MAX_GAP_MS = 600_000
/** Milliseconds since the epoch. */
const EVENT_ID = /^\d{1,15}$/
/** More decisions than a poll reads, or older ones, are not sent. */
const SKIPPED = 'event: skipped\ndata: 1\n\n'

export const LIVE: readonly PageDefinition[] = [
  {
    path: TAIL_PATH.slice(CONSOLE_PATH.length),
    id: 'tail',
    async show(desk) {
      if (!desk.may('queryAudit'))
        throw new Denied({ code: 'permission_missing', permission: 'portcullis:audit:read' })
      return tailOf(desk)
    },
  },
  scriptAt(SCRIPT_PATH, 'script', SCRIPT),
  scriptAt(COPY_SCRIPT_PATH, 'copyScript', COPY_SCRIPT),
]

function scriptAt(path: string, id: string, text: string): PageDefinition {
  return {
    path: path.slice(CONSOLE_PATH.length),
    id,
    show: () =>
      new Response(text, {
        headers: {
          ...NO_STORE,
          'Content-Type': 'text/javascript; charset=utf-8',
          'Cross-Origin-Resource-Policy': 'same-origin',
        },
      }),
  }
}

/**
 * Sends new events. Ends if the visitor may not read them any more. After each poll, it sends the time as the id, with
 * which the browser connects again: the script leaves out the events that it has shown.
 */
function tailOf(desk: Desk): Response {
  const resumed = EVENT_ID.test(desk.lastEventId ?? '') ? Number(desk.lastEventId) : undefined
  let seen: ReadonlySet<string> | undefined = resumed === undefined ? undefined : new Set()
  let isFirst = true

  /** Returns the events since a time, and whether they are all. Undefined: the visitor lost the right. */
  async function eventsSince(sinceMs: number, nowMs: number) {
    const { since: _, until: __, ...filters } = filtersOf(desk.query, nowMs)
    const events: AuditEvent[] = []
    let cursor: string | undefined
    for (let pages = 0; pages < PAGES; pages += 1) {
      const page = await desk.readAudit('queryAudit', auditPage, {
        query: {
          ...{ ...filters, since: new Date(sinceMs).toISOString(), limit: EVENTS },
          ...(cursor !== undefined && { cursor }),
        },
      })
      if (page === undefined) return undefined
      events.push(...page.events)
      cursor = page.cursor
      if (cursor === undefined) break
    }
    return { events, isAll: cursor === undefined }
  }

  /** Returns the text of the events that were not sent, the oldest first. Undefined: the visitor lost the right. */
  async function poll(): Promise<string | undefined> {
    const nowMs = Date.now()
    const beganMs = isFirst && resumed !== undefined ? Math.min(resumed, nowMs) : nowMs
    const sinceMs = Math.max(beganMs, nowMs - MAX_GAP_MS) - WINDOW_MS
    const found = await eventsSince(sinceMs, nowMs)
    if (found === undefined) return undefined
    const known = seen ?? new Set(found.events.map(({ id }) => id))
    const isSkipped = beganMs < nowMs - MAX_GAP_MS || (seen !== undefined && !found.isAll)
    const fresh = found.events.filter(({ id }) => !known.has(id)).reverse()
    seen = new Set([...known, ...fresh.map(({ id }) => id)].slice(-MAX_SEEN))
    isFirst = false
    const rows =
      desk.query.route === undefined
        ? groupCommands(fresh)
        : fresh.map((event) => ({ event, others: 0 }))
    const sent = rows.map((row) => `data: ${JSON.stringify(rowOf(row))}\n\n`).join('')
    // The last line finds out that the browser has left.
    return `${sent}${isSkipped ? SKIPPED : ''}id: ${nowMs}\n:\n\n`
  }

  return eventStream(desk, { poll, pauseMs: () => POLL_MS })
}

/** What the script shows of an event: texts, and paths of the console. */
function rowOf({ event, others }: CommandGroup<AuditEvent>) {
  const { id, time, requestId, decision, status, method, route, reason, actor, address } = event
  const caller = callerOfEvent(actor)
  const cells: readonly (readonly [text: string, path?: string])[] = [
    [time.slice(0, 19).replace('T', ' '), pathTo(`/decisions/${encodeURIComponent(requestId)}`)],
    [DECISION_WORDS[decision]],
    [String(status)],
    [`${method} ${route ?? '(no route)'}`],
    [withOthers(reason, others)],
    caller === undefined ? ['anonymous'] : [caller.value, pathTo('/callers', { ...caller })],
    [address, pathTo('/callers', { kind: 'address', value: address })],
  ]
  return { id, decision, cells: cells.map(([text, ...path]) => [visible(text), ...path]) }
}
