/** W3C Trace Context: parses `traceparent` and checks `tracestate` headers of callers. */

export interface ParentTrace {
  /** 32 lower-case hex digits, not all zero. */
  readonly traceId: string
  /** The caller's span: 16 lower-case hex digits, not all zero. */
  readonly spanId: string
  /** Two hex digits with the defined flags (sampled, random). All other flags are cleared. */
  readonly flags: string
  readonly isSampled: boolean
}

/** Four fields; a version above `00` may have more (section 3.2.4). Neither id is all zero. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
/** `sampled` (section 3.2.2.5.1) and `random` of level 2. Both must be passed on. */
const KNOWN_FLAGS = 0x03
const SAMPLED_FLAG = 0x01

/** Section 3.3.1.1. */
const MAX_TRACESTATE_MEMBERS = 32
/** Section 3.3.1.5 requires at least 512. Longer values than this are not plausible. */
const MAX_TRACESTATE_LENGTH = 8_192
const PRINTABLE = /^[\t\x20-\x7e]+$/

/**
 * Parses a `traceparent` header. Returns undefined if it is absent or invalid and the trace must be
 * restarted: upper-case digits, version `ff`, an id of zeros, or version `00` with a fifth field.
 * For a higher version, it reads the first four fields.
 */
export function parseTraceparent(header: string | undefined): ParentTrace | undefined {
  if (header === undefined) return undefined
  const fields = TRACEPARENT.exec(header)
  const [, version, traceId, spanId, flags, more] = fields ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  if (version === '00' && more !== undefined) return undefined
  const known = Number.parseInt(flags, 16) & KNOWN_FLAGS
  return { traceId, spanId, flags: `0${known}`, isSampled: (known & SAMPLED_FLAG) !== 0 }
}

/** Reports whether a `tracestate` may be passed on. Does NOT check the grammar of its members. */
export function isPassableTracestate(header: string): boolean {
  if (header.length > MAX_TRACESTATE_LENGTH || !PRINTABLE.test(header)) return false
  const members = header.split(',', MAX_TRACESTATE_MEMBERS + 1)
  return members.length <= MAX_TRACESTATE_MEMBERS
}
