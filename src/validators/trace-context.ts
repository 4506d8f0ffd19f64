/** W3C Trace Context: what may be taken over from a `traceparent` and a `tracestate` header. */

/** The part of a caller's trace that is continued. */
export interface ParentTrace {
  /** 32 lower-case hex digits, not all zero. */
  readonly traceId: string
  /** The caller's span: 16 lower-case hex digits, not all zero. */
  readonly spanId: string
  /** Two hex digits: the flags that are defined (sampled, random); all others are cleared. */
  readonly flags: string
  readonly isSampled: boolean
}

/** Four fields; a version above `00` may have more (section 3.2.4). Neither id is all zero. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
/** `sampled` (section 3.2.2.5.1) and the `random` of level 2, both to be passed on. */
const KNOWN_FLAGS = 0x03
const SAMPLED_FLAG = 0x01

/** Section 3.3.1.1. */
export const MAX_TRACESTATE_MEMBERS = 32
/** Section 3.3.1.5 asks for 512 at least; beyond this it is freight, not a trace. */
export const MAX_TRACESTATE_LENGTH = 8_192
const PRINTABLE = /^[\t\x20-\x7e]+$/

/**
 * Reads a `traceparent` header. Undefined where it is absent or invalid and the trace is to be
 * restarted: upper-case digits, version `ff`, an id of zeros, a version `00` with a fifth field.
 * Of a higher version the first four fields are read.
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

/**
 * Tells whether a `tracestate` header may be passed on, which is then done unmodified. Checks its
 * size, the number of its members and that it is printable; NOT the grammar of keys and values.
 */
export function isPassableTracestate(header: string): boolean {
  if (header.length > MAX_TRACESTATE_LENGTH || !PRINTABLE.test(header)) return false
  const members = header.split(',', MAX_TRACESTATE_MEMBERS + 1)
  return members.length <= MAX_TRACESTATE_MEMBERS
}
