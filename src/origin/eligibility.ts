/** Decides which requests are identical, and which responses may be shared. */
import type { OriginRequest } from './origin.ts'

/** Maximum size of a shared response, in bytes as sent. */
export const MAX_SHARED_BYTES = 262_144

/** Forwarded headers that may differ between identical requests, in lower case. */
const OF_THE_REQUEST: ReadonlySet<string> = new Set([
  'x-request-id',
  'traceparent',
  'tracestate',
  // Contains the same facts as the other `X-Auth-*` headers, and a time.
  'x-auth-assertion',
])

/** Reports whether a request can share a response: a GET without a body and without an upgrade. */
export const mayShare = ({ incoming, body, headers }: OriginRequest): boolean =>
  incoming.method === 'GET' && body === null && !headers.has('upgrade')

/**
 * Returns a key that is equal for identical requests of the same caller. It contains the timeout,
 * the URL and all forwarded headers, identity included, except those that identify a single
 * request.
 */
export function keyOf({ incoming, headers, timeoutMs }: OriginRequest): string {
  let key = `${timeoutMs} ${incoming.url}`
  // Names and values contain no line break, and equal names are in the same order.
  for (const [name, value] of headers) {
    if (!OF_THE_REQUEST.has(name)) key += `\n${name}:${value}`
  }
  return key
}

/** Media types of endless responses. */
const ENDLESS = /^(?:text\/event-stream|multipart\/x-mixed-replace)\b/i
/** RFC 9111 sections 5.2.2.5 and 4.1: the response is for one request only. */
const NO_STORE = /(?:^|,)\s*no-store\s*(?:,|$)/i
const ANY_VARIANT = /(?:^|,)\s*\*\s*(?:,|$)/

/**
 * Reports whether a response may be shared with concurrent identical requests. It must not set a
 * cookie, forbid storage, vary on unknown input, be an upgrade, be endless, or declare more than
 * {@link MAX_SHARED_BYTES}. Error responses of the origin may be shared too.
 */
export function isShareable({ status, headers }: Response): boolean {
  return (
    status !== 101 &&
    !headers.has('Set-Cookie') &&
    !NO_STORE.test(headers.get('Cache-Control') ?? '') &&
    !ANY_VARIANT.test(headers.get('Vary') ?? '') &&
    !ENDLESS.test(headers.get('Content-Type') ?? '') &&
    Number(headers.get('Content-Length') ?? 0) <= MAX_SHARED_BYTES
  )
}
