/** The wire form of an event, and its largest size. */
import type { AuditEvent } from './event.ts'

/**
 * Far below what a queue message may hold (128 KB), so that a caller who chooses long names
 * cannot fill batches with them; far above what an honest event needs (about 700 bytes).
 */
export const MAX_EVENT_BYTES = 8_192
/**
 * Of an event that says what an operator changed: it names up to a hundred relation tuples, and none
 * of them may be cut. Callers who are no operators have no part in it.
 */
export const MAX_CHANGE_EVENT_BYTES = 32_768

/** Characters that a field keeps, and entries (a sixteenth of it): the first that fits wins. */
const CAPS = [512, 128, 32] as const
const CHARACTERS_PER_ENTRY = 16

const encoder = new TextEncoder()

/** UTF-8 takes at most so many for each unit of a JavaScript string. */
const MAX_BYTES_PER_UNIT = 3
/** Written over by each event that is measured, and never read. */
const scratch = new Uint8Array(MAX_EVENT_BYTES)

/** Length of a text in UTF-8, bytes. A quarter of what a pattern takes to look at each character. */
export function utf8Length(text: string): number {
  const { read, written } = encoder.encodeInto(text, scratch)
  return read === text.length ? written : encoder.encode(text).byteLength
}

/**
 * The event as one line of JSON of at most {@link MAX_EVENT_BYTES}, or {@link MAX_CHANGE_EVENT_BYTES}.
 * JSON escapes what could break a line or a log (CR, LF, quotes, control characters). In an event that is too large,
 * every long field ends in `…[+n]`, n being the characters or entries that were cut; `id`, `time`,
 * `decision` and `status` are always whole, and the result always fits the event's schema.
 */
export function serialiseEvent(event: AuditEvent): string {
  let text = JSON.stringify(event)
  // Nearly every event: too short to need a look at its characters.
  if (text.length * MAX_BYTES_PER_UNIT <= MAX_EVENT_BYTES) return text
  const mostBytes = event.change === undefined ? MAX_EVENT_BYTES : MAX_CHANGE_EVENT_BYTES
  for (const cap of CAPS) {
    if (utf8Length(text) <= mostBytes) return text
    text = JSON.stringify(truncate(event, cap))
  }
  return text
}

const marker = (cut: number) => `…[+${cut}]`

function truncate(event: AuditEvent, cap: number): AuditEvent {
  const short = (text: string) =>
    text.length <= cap ? text : text.slice(0, cap).toWellFormed() + marker(text.length - cap)
  const shortOrNull = (text: string | null) => (text === null ? null : short(text))
  const maxEntries = cap / CHARACTERS_PER_ENTRY
  const limits = event.limits.slice(0, maxEntries)
  const durations = Object.entries(event.durationsMs)
  const kept = durations.slice(0, maxEntries).map(([stage, ms]) => [short(stage), ms] as const)
  const limitsCut = event.limits.length - limits.length
  const durationsCut = durations.length - kept.length
  const observedCut = (event.observed?.length ?? 0) - maxEntries
  return {
    ...event,
    requestId: short(event.requestId),
    traceId: short(event.traceId),
    actor: {
      issuer: shortOrNull(event.actor.issuer),
      subject: shortOrNull(event.actor.subject),
      client: shortOrNull(event.actor.client),
      tenant: shortOrNull(event.actor.tenant),
      tokenIdHash: shortOrNull(event.actor.tokenIdHash),
    },
    method: short(event.method),
    route: shortOrNull(event.route),
    reason: short(event.reason),
    limits: [
      ...limits.map((limit) => ({ ...limit, name: short(limit.name) })),
      ...(limitsCut > 0 ? [{ name: marker(limitsCut), limit: 0, remaining: 0 }] : []),
    ],
    durationsMs: Object.fromEntries([
      ...kept,
      ...(durationsCut > 0 ? [[marker(durationsCut), 0] as const] : []),
    ]),
    address: short(event.address),
    colo: shortOrNull(event.colo),
    ...(event.observed && {
      observed: [
        ...event.observed.slice(0, maxEntries).map(short),
        ...(observedCut > 0 ? [marker(observedCut)] : []),
      ],
    }),
    ...(event.change && {
      change: { action: short(event.change.action), target: short(event.change.target) },
    }),
  }
}
