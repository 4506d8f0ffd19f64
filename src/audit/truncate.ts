/** Serializes audit events and limits their size. */
import type { AuditEvent, AuditSink } from './event.ts'

/**
 * Far below the limit of a queue message (128 KB), so that a caller cannot fill batches with long
 * names. Far above a normal event (about 700 bytes).
 */
export const MAX_EVENT_BYTES = 8_192
/** An operator's change names up to a hundred relation tuples, and none may be truncated. */
export const MAX_CHANGE_EVENT_BYTES = 32_768

/**
 * Limits on the characters of a field, tried in order until the event fits. A list keeps a sixteenth
 * as many entries.
 */
const CAPS = [512, 128, 32] as const
const CHARACTERS_PER_ENTRY = 16

const encoder = new TextEncoder()

const MAX_UTF8_BYTES_PER_UNIT = 3
/** Each measurement overwrites it; it is never read. */
const scratch = new Uint8Array(MAX_EVENT_BYTES)

/** Takes a quarter of the time of a regular expression that inspects each character. */
export function utf8Length(text: string): number {
  const { read, written } = encoder.encodeInto(text, scratch)
  return read === text.length ? written : encoder.encode(text).byteLength
}

/**
 * Returns the event as one line of JSON of at most {@link MAX_EVENT_BYTES}, or {@link
 * MAX_CHANGE_EVENT_BYTES} with a change. JSON escapes the characters that could break a line or a
 * log (CR, LF, quotes, control characters).
 *
 * In an event that is too large, long fields end in `…[+n]`, where n is the number of removed
 * characters or entries. `id`, `time`, `decision` and `status` are never truncated, and the result
 * matches the event schema.
 */
export function serializeEvent(event: AuditEvent): string {
  let text = JSON.stringify(event)
  // Fast path for nearly all events: this short text cannot exceed the limit.
  if (text.length * MAX_UTF8_BYTES_PER_UNIT <= MAX_EVENT_BYTES) return text
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

/** Creates a sink that writes each event as one line of JSON. Does NOT retry or store events. */
export const consoleAuditSink = (
  write: (line: string) => void = (line) => console.log(line),
): AuditSink => ({
  record(event) {
    write(serializeEvent(event))
  },
})
