/** Filters the headers of an origin's response before the client gets them. */
import { deleteNamedIn } from '../middleware/sanitize-headers.ts'

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

/** Cache rules only for intermediaries. They are removed from authenticated responses. */
const SHARED_CACHE_HEADERS = [
  'cdn-cache-control',
  'cloudflare-cdn-cache-control',
  'surrogate-control',
  'surrogate-key',
  'cache-tag',
]

/** Headers and their lower-case names. Looking up a name in a set is cheaper than in `Headers`. */
interface ResponseFields {
  readonly headers: Headers
  readonly names: Set<string>
}

export function fieldsOf(headers: Headers): ResponseFields {
  const names = new Set<string>()
  for (const name of headers.keys()) names.add(name)
  return { headers, names }
}

function fieldOf({ headers, names }: ResponseFields, name: string): string | undefined {
  return names.has(name) ? (headers.get(name) ?? undefined) : undefined
}

function remove({ headers, names }: ResponseFields, name: string): void {
  if (names.delete(name)) headers.delete(name)
}

/**
 * Removes from an origin's headers those of its own hop, those that reveal its software, and those
 * that only the gateway may send: limits, ids, and all of CORS. `Set-Cookie` fields stay separate.
 */
export function sanitizeResponse(fields: ResponseFields): void {
  const { headers, names } = fields
  const connection = fieldOf(fields, 'connection')
  for (const name of names) {
    if (DROPPED.has(name) || DROPPED_FAMILY.test(name)) remove(fields, name)
  }
  deleteNamedIn(connection, { delete: (name) => remove(fields, name) })
  headers.set('X-Content-Type-Options', 'nosniff')
}

/**
 * Directives that allow a shared cache to store a response to `Authorization`, or are replaced by
 * `private` (RFC 9111 section 3.5).
 */
const SHARING = /^(?:public|private|s-maxage|proxy-revalidate|stale-while-revalidate)\b/i

/** Replaces every directive that allows a shared cache to store the response by `private`. */
export function makePrivate(fields: ResponseFields): void {
  const { headers } = fields
  const directives = splitDirectives(fieldOf(fields, 'cache-control') ?? '')
  if (!directives.some((directive) => /^no-store$/i.test(directive))) {
    const kept = directives.filter((directive) => !SHARING.test(directive))
    headers.set('Cache-Control', ['private', ...kept].join(', '))
  }
  for (const name of SHARED_CACHE_HEADERS) remove(fields, name)
}

/**
 * Adds `Authorization` to `Vary`. Otherwise a shared cache may serve the response of an anonymous
 * caller to an authenticated one (RFC 9111 section 4.1).
 */
export function varyByCaller(fields: ResponseFields): void {
  if (!/(?:^|,)\s*(?:\*|authorization)\s*(?:,|$)/i.test(fieldOf(fields, 'vary') ?? ''))
    fields.headers.append('Vary', 'Authorization')
}

/** Splits at commas outside of quotes, as in `no-cache="Set-Cookie, X-A", max-age=1`. */
function splitDirectives(header: string): string[] {
  return (header.match(/(?:[^,"]|"[^"]*"?)+/g) ?? [])
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '')
}
