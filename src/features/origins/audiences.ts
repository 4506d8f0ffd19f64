/** Audiences that routes require of tokens, and that no trusted issuer has. */
import { publicUrlOf } from '../../validators/public-url.ts'

interface AudienceRoute {
  readonly audience?: string | undefined
}

/** Variables of the gateway, or of the shell of an operator. */
type Variables = Readonly<Record<string, unknown>>

/**
 * Returns the routes whose `audience` is in no entry of `ISSUERS`. Tokens may have audiences besides
 * that of their entry, so such a route is suspect, but can be right. Returns no route if `ISSUERS` is
 * missing or invalid.
 */
export function withoutIssuer<Route extends AudienceRoute>(
  routes: readonly Route[],
  { ISSUERS, PUBLIC_URL }: Variables,
): readonly Route[] {
  const entries = entriesIn(ISSUERS)
  if (entries === undefined) return []
  const known = new Set<unknown>([
    publicUrlOf(`${PUBLIC_URL}`),
    ...entries.flatMap((entry) => entry?.audience),
  ])
  return routes.filter(({ audience }) => audience !== undefined && !known.has(audience))
}

type Entry = { readonly audience?: string | string[] } | null

function entriesIn(text: unknown): readonly Entry[] | undefined {
  try {
    // Removes a byte order mark, too.
    const entries: unknown = JSON.parse(String(text).trim())
    return Array.isArray(entries) ? entries : undefined
  } catch {
    return undefined
  }
}
