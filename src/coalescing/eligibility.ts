/** Which requests are the same, and which answers may be given to more than the one who asked. */
import type { OriginRequest } from '../origin.ts'

/** The largest answer that is shared, bytes as sent. */
export const MAX_SHARED_BYTES = 262_144

/** Forwarded headers that differ between requests which are the same, lower case. */
const OF_THE_REQUEST: ReadonlySet<string> = new Set([
  'x-request-id',
  'traceparent',
  'tracestate',
  // Says what the other `X-Auth-*` say, at another moment.
  'x-auth-assertion',
])

/** Whether a request asks for nothing but an answer: a GET without a body that stays HTTP. */
export const mayShare = ({ incoming, body, headers }: OriginRequest): boolean =>
  incoming.method === 'GET' && body === null && !headers.has('upgrade')

/**
 * What an origin is told, as text: URL and every header that goes to it, identity included, but for
 * those that name the single request. Equal text is an equal question by the same caller.
 */
export function keyOf({ incoming, headers, timeoutMs }: OriginRequest): string {
  let key = `${timeoutMs} ${incoming.url}`
  // No name and no value has a line break, and the same names come in the same order.
  for (const [name, value] of headers) {
    if (!OF_THE_REQUEST.has(name)) key += `\n${name}:${value}`
  }
  return key
}

/** Media types of answers that have no end. */
const ENDLESS = /^(?:text\/event-stream|multipart\/x-mixed-replace)\b/i
/** RFC 9111 sections 5.2.2.5 and 4.1: for one request only, whoever else asks the same. */
const NO_STORE = /(?:^|,)\s*no-store\s*(?:,|$)/i
const ANY_VARIANT = /(?:^|,)\s*\*\s*(?:,|$)/

/**
 * Whether an answer may be given to requests that asked the same at the same time. It may not where
 * it sets a cookie, forbids to be kept, depends on what no header tells, is an upgrade, has no end or
 * is longer than {@link MAX_SHARED_BYTES}. Errors of the origin are answers like others.
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
