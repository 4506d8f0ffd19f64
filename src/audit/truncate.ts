/** Serializes audit events and limits their size. */
import type { AuditEvent, AuditSink } from './event.ts'

/**
 * Far below the limit of a queue message (128 KB), so that a caller cannot fill batches with long
 * names. Far above a normal event (about 700 bytes).
 */
const MAX_EVENT_BYTES = 8_192
/** An operator's change names up to a hundred relation tuples, and none may be truncated. */
const MAX_CHANGE_EVENT_BYTES = 32_768

/** Maximum characters of a field, tried in order. A list keeps a sixteenth as many entries. */
const CAPS = [512, 128, 32] as const
const CHARACTERS_PER_ENTRY = 16

const encoder = new TextEncoder()
const MAX_UTF8_BYTES_PER_UNIT = 3
/** Each measurement overwrites it; it is never read. */
const scratch = new Uint8Array(MAX_EVENT_BYTES)

/** Returns bytes. Takes a quarter of the time of a regular expression on each character. */
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
  const { actor, change, observed, rejected, grants, fields } = event
  const short = (text: string) =>
    text.length <= cap ? text : text.slice(0, cap).toWellFormed() + marker(text.length - cap)
  const shortOrNull = (text: string | null) => (text === null ? null : short(text))

  /** Keeps the first entries. `marked` creates the entry that replaces the others. */
  function shortList<Entry>(
    entries: readonly Entry[],
    shortEntry: (entry: Entry) => Entry,
    marked: (name: string) => Entry,
  ): Entry[] {
    const kept = entries.slice(0, cap / CHARACTERS_PER_ENTRY).map(shortEntry)
    const cut = entries.length - kept.length
    return cut === 0 ? kept : [...kept, marked(marker(cut))]
  }

  return {
    ...event,
    requestId: short(event.requestId),
    traceId: short(event.traceId),
    actor: {
      issuer: shortOrNull(actor.issuer),
      subject: shortOrNull(actor.subject),
      client: shortOrNull(actor.client),
      tenant: shortOrNull(actor.tenant),
      tokenIdHash: shortOrNull(actor.tokenIdHash),
      ...(actor.key !== undefined && { key: short(actor.key) }),
    },
    method: short(event.method),
    route: shortOrNull(event.route),
    reason: short(event.reason),
    limits: shortList(
      event.limits,
      (limit) => ({ ...limit, name: short(limit.name) }),
      (name) => ({ name, limit: 0, remaining: 0 }),
    ),
    durationsMs: Object.fromEntries(
      shortList(
        Object.entries(event.durationsMs),
        ([stage, ms]) => [short(stage), ms],
        (name) => [name, 0],
      ),
    ),
    address: short(event.address),
    colo: shortOrNull(event.colo),
    ...(observed && { observed: shortList(observed, short, (name) => name) }),
    ...(rejected && {
      rejected: {
        ...rejected,
        seen: short(rejected.seen),
        expected: short(rejected.expected),
      },
    }),
    ...(grants && {
      grants: {
        roles: shortList(grants.roles, short, (name) => name),
        scopes: shortList(grants.scopes, short, (name) => name),
        ...(grants.plan !== undefined && { plan: short(grants.plan) }),
        ...(grants.relation !== undefined && { relation: short(grants.relation) }),
      },
    }),
    ...(fields && {
      fields: Object.fromEntries(
        Object.entries(fields).map(([name, value]) => [short(name), short(value)]),
      ),
    }),
    ...(change && { change: { action: short(change.action), target: short(change.target) } }),
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
