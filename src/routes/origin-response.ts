/** Filters the headers of an origin's response before the client gets them. */
import { fieldOf, type ResponseFields, remove } from '../http/shared-caches.ts'
import { namedIn } from '../middleware/sanitize-headers.ts'

/** Lower-case names that are removed. Each group has its reason above it. */
// biome-ignore format: a table
const DROPPED: ReadonlySet<string> = new Set([
  // Hop by hop (RFC 9110 section 7.6.1).
  'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade',
  // Software and machines of the origin.
  'server', 'via', 'x-powered-by', 'x-aspnet-version', 'x-aspnetmvc-version', 'x-runtime',
  'x-generator', 'x-backend', 'x-backend-server', 'x-served-by', 'x-varnish',
  // Headers that only the gateway may send: alternative services, ids, limits.
  'alt-svc', 'x-request-id', 'traceparent', 'tracestate', 'ratelimit',
  // Instructions for a front proxy to send another file.
  'x-sendfile',
])

const DROPPED_FAMILY =
  /[^a-z0-9-]|^(?:access-control-|ratelimit-|x-ratelimit-|x-auth-|x-debug|x-accel-|proxy-|cf-)/

/** Reports whether the client does not get a header of an origin, by its lower-case name. */
export const isWithheld = (name: string): boolean => DROPPED.has(name) || DROPPED_FAMILY.test(name)

const NO_CONTENT = 204
const RESET_CONTENT = 205

/**
 * Removes from an origin's headers those of its own hop, those that reveal its software, and those
 * that only the gateway may send: limits, ids, and all of CORS. Also the length of a response that can
 * have none (RFC 9110 section 8.6); that of a 205 is 0 (section 15.3.6). `Set-Cookie` fields stay separate.
 */
export function sanitizeResponse(fields: ResponseFields, status: number): void {
  const { headers, names } = fields
  const connection = fieldOf(fields, 'connection')
  for (const name of names.keys()) if (isWithheld(name)) remove(fields, name)
  for (const name of namedIn(connection)) remove(fields, name)
  if (status === NO_CONTENT) remove(fields, 'content-length')
  if (status === RESET_CONTENT) headers.set('content-length', '0')
  headers.set('X-Content-Type-Options', 'nosniff')
}
