/** Keeps responses of one caller out of shared caches (RFC 9111). */

/** Cache rules only for intermediaries. They are removed from authenticated responses. */
const SHARED_CACHE_HEADERS = [
  'cdn-cache-control',
  'cloudflare-cdn-cache-control',
  'surrogate-control',
  'surrogate-key',
  'cache-tag',
]

/** Headers and their lower-case names. Looking up a name in a set is cheaper than in `Headers`. */
export interface ResponseFields {
  readonly headers: Headers
  /** `Set-Cookie` may be missing. */
  readonly names: Names
}

type Names = Pick<Set<string>, 'has' | 'delete' | 'keys'>

/**
 * Returns the headers, and how long their names and values are together: 0 where a runtime has them as plain
 * data, because it has bounded them.
 */
export function fieldsOf(headers: Headers) {
  const { fields } = headers as { readonly fields?: Names }
  if (fields !== undefined) return { headers, names: fields, length: 0 }
  const names = new Set<string>()
  let length = 0
  // Not a `for` loop: each step would leave JavaScript.
  headers.forEach((value, name) => {
    names.add(name)
    length += name.length + value.length
  })
  return { headers, names, length }
}

export function fieldOf({ headers, names }: ResponseFields, name: string): string | undefined {
  return names.has(name) ? (headers.get(name) ?? undefined) : undefined
}

export function remove({ headers, names }: ResponseFields, name: string): void {
  // `names` may not contain fields of this name.
  if (names.delete(name) || name === 'set-cookie') headers.delete(name)
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
 * Adds the request headers that identify callers to `Vary`. Otherwise a shared cache may serve the
 * response of an anonymous caller to another one (RFC 9111 section 4.1).
 */
export function varyBy(fields: ResponseFields, names: readonly string[]): void {
  const vary = fieldOf(fields, 'vary')
  const listed = vary === undefined ? [] : vary.toLowerCase().split(/[\s,]+/)
  if (listed.includes('*')) return
  for (const name of names)
    if (!listed.includes(name.toLowerCase())) fields.headers.append('Vary', name)
}

/** Splits at commas outside of quotes, as in `no-cache="Set-Cookie, X-A", max-age=1`. */
function splitDirectives(header: string): string[] {
  return (header.match(/(?:[^,"]|"[^"]*"?)+/g) ?? [])
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '')
}
