/** What of an origin's answer goes back to the client. */
import { deleteNamedIn } from '../middleware/sanitize-headers.ts'

/** Lower-case names that end here, each for the reason that heads its line. */
// biome-ignore format: a table
const DROPPED: ReadonlySet<string> = new Set([
  // Hop by hop (RFC 9110 section 7.6.1).
  'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade',
  // What the origin runs on, and which of its machines answered.
  'server', 'via', 'x-powered-by', 'x-aspnet-version', 'x-aspnetmvc-version', 'x-runtime',
  'x-generator', 'x-backend', 'x-backend-server', 'x-served-by', 'x-varnish',
  // Spoken for by the gateway: other ways to the authority, ids, limits.
  'alt-svc', 'x-request-id', 'traceparent', 'tracestate', 'ratelimit',
  // Orders to a front proxy to send another file.
  'x-sendfile',
])

const DROPPED_FAMILY =
  /[^a-z0-9-]|^(?:access-control-|ratelimit-|x-ratelimit-|x-auth-|x-debug|x-accel-|proxy-|cf-)/

/** Cache rules for intermediaries only; an authenticated answer has none of them. */
const SHARED_CACHE_HEADERS = [
  'cdn-cache-control',
  'cloudflare-cdn-cache-control',
  'surrogate-control',
  'surrogate-key',
  'cache-tag',
]

/**
 * Headers beside their lower-case names, so that the platform is asked only about what is there: a look
 * into its `Headers` costs more than one into a set.
 */
export interface ResponseFields {
  readonly headers: Headers
  readonly names: Set<string>
}

/** Reads the names of `headers` once. */
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
 * Removes from an origin's headers what is of its own hop, tells about its machinery, or is for
 * the gateway alone to say: limits, ids, and all of CORS, which is denied unless the gateway
 * allows it. `Set-Cookie` stays, each by itself.
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

/** Directives that let a shared cache keep an answer to `Authorization` (RFC 9111 section 3.5). */
const SHARING = /^(?:public|private|s-maxage|proxy-revalidate|stale-while-revalidate)\b/i

/**
 * Makes an answer private to its caller: `Cache-Control: private` in place of whatever would let
 * a shared cache keep it (RFC 9111 section 5.2.2.7), and `Vary: Authorization`. `no-store` stays.
 */
export function makePrivate(fields: ResponseFields): void {
  const { headers } = fields
  const directives = splitDirectives(fieldOf(fields, 'cache-control') ?? '')
  if (!directives.some((directive) => /^no-store$/i.test(directive))) {
    const kept = directives.filter((directive) => !SHARING.test(directive))
    headers.set('Cache-Control', ['private', ...kept].join(', '))
  }
  for (const name of SHARED_CACHE_HEADERS) remove(fields, name)
  if (!/(?:^|,)\s*(?:\*|authorization)\s*(?:,|$)/i.test(fieldOf(fields, 'vary') ?? ''))
    headers.append('Vary', 'Authorization')
}

/** Splits at commas outside of quotes, as in `no-cache="Set-Cookie, X-A", max-age=1`. */
function splitDirectives(header: string): string[] {
  return (header.match(/(?:[^,"]|"[^"]*"?)+/g) ?? [])
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '')
}
