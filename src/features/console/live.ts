/** The live tail of decisions: a stream of server-sent events, and the script that shows them. */
import type { AuditEvent } from '../../audit/event.ts'
import { Denied } from '../../errors.ts'
import { NO_STORE } from '../../http/response-headers.ts'
import { visible } from '../../problems/visible.ts'
import { auditPage, filtersOf } from './decision-query.ts'
import { callerOfEvent, DECISION_WORDS } from './event-table.ts'
import { CONSOLE_PATH, pathTo, SCRIPT_PATH, TAIL_PATH } from './layout.ts'
import type { Desk, PageDefinition } from './page.ts'
import { SCRIPT } from './script.ts'

const POLL_MS = 2_000
/** Events arrive a second or two after their decision, and not in its order. */
const WINDOW_MS = 30_000
/** Then the browser connects again, with its session. */
const LIFE_MS = 300_000
const EVENTS = '100'
const MAX_SEEN = 2_000

export const LIVE: readonly PageDefinition[] = [
  {
    path: TAIL_PATH.slice(CONSOLE_PATH.length),
    id: 'tail',
    async show(desk) {
      if (!desk.may('queryAudit'))
        throw new Denied({ code: 'permission_missing', permission: 'portcullis:audit:read' })
      return new Response(tailOf(desk), {
        headers: { ...NO_STORE, 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' },
      })
    },
  },
  {
    path: SCRIPT_PATH.slice(CONSOLE_PATH.length),
    id: 'script',
    show: () =>
      new Response(SCRIPT, {
        headers: {
          ...NO_STORE,
          'Content-Type': 'text/javascript; charset=utf-8',
          'Cross-Origin-Resource-Policy': 'same-origin',
        },
      }),
  },
]

/** Sends new events. Ends if the visitor may not read them any more. */
function tailOf(desk: Desk): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const endMs = Date.now() + LIFE_MS
  let seen: ReadonlySet<string> | undefined
  let isCancelled = false

  /** Returns the events that were not sent, the oldest first. Undefined: the visitor lost the right. */
  async function newEvents(): Promise<readonly AuditEvent[] | undefined> {
    const { since: _, until: __, ...filters } = filtersOf(desk.query, Date.now())
    const since = new Date(Date.now() - WINDOW_MS).toISOString()
    const query = { ...filters, since, limit: EVENTS }
    const page = await desk.readAudit('queryAudit', auditPage, { query })
    if (page === undefined) return undefined
    const known = seen ?? new Set(page.events.map(({ id }) => id))
    const fresh = page.events.filter(({ id }) => !known.has(id))
    seen = new Set([...known, ...fresh.map(({ id }) => id)].slice(-MAX_SEEN))
    return fresh.reverse()
  }

  return new ReadableStream({
    async start(controller) {
      controller.enqueue(encoder.encode('retry: 2000\n\n'))
    },
    async pull(controller) {
      for (;;) {
        if (seen !== undefined) await new Promise((done) => setTimeout(done, POLL_MS))
        if (isCancelled) return
        try {
          await desk.readmit()
          const events = await newEvents()
          if (events === undefined || Date.now() > endMs) return controller.close()
          if (events.length === 0) {
            // Finds out that the browser has left.
            controller.enqueue(encoder.encode(':\n\n'))
            return
          }
          const text = events.map((event) => `data: ${JSON.stringify(rowOf(event))}\n\n`).join('')
          return controller.enqueue(encoder.encode(text))
        } catch {
          return controller.close()
        }
      }
    },
    cancel() {
      isCancelled = true
    },
  })
}

/** What the script shows of an event: texts, and paths of the console. */
function rowOf({
  time,
  requestId,
  decision,
  status,
  method,
  route,
  reason,
  actor,
  address,
}: AuditEvent) {
  const caller = callerOfEvent(actor)
  const cells: readonly (readonly [text: string, path?: string])[] = [
    [time.slice(0, 19).replace('T', ' '), pathTo(`/decisions/${encodeURIComponent(requestId)}`)],
    [DECISION_WORDS[decision]],
    [String(status)],
    [`${method} ${route ?? '(no route)'}`],
    [reason],
    caller === undefined ? ['anonymous'] : [caller.value, pathTo('/callers', { ...caller })],
    [address, pathTo('/callers', { kind: 'address', value: address })],
  ]
  return { decision, cells: cells.map(([text, ...path]) => [visible(text), ...path]) }
}
