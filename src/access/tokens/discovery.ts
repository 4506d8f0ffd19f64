/** Finds the key set and the endpoints of an issuer in the metadata that the issuer publishes. */
import { Unavailable } from '../../errors.ts'
import { parseStrictJson } from '../../http/strict-json.ts'
import { isWithin } from '../../isolate/period.ts'
import { httpUrl, isPrivateLine } from '../../validators/variables.ts'
import { download } from './document.ts'

/** Finds the URL of a key set, or of an endpoint. */
export type Locator = ReturnType<typeof createDiscovery>

/** The metadata of an issuer is not usable. The message names the mistake. */
export class MetadataRefused extends Error {
  override readonly name = 'MetadataRefused'
}

/** Larger than any metadata, which has some 5 KB. */
export const MAX_METADATA_BYTES = 65_536
const MAX_JSON_DEPTH = 16
/**
 * Shorter than the pause between two downloads of the key set, so that a moved key set is found
 * with the next one. It bounds the downloads that unknown keys cause.
 */
const FRESH_MS = 60_000
/** The time for which the last location is used while the metadata is not available. */
const MAX_STALE_MS = 86_400_000
/** The longest text of a document in a message. */
const MAX_SEEN_CHARS = 200

/**
 * Returns the URLs of an issuer's metadata: of OpenID Connect Discovery 1.0 section 4, which appends
 * the well-known name to the issuer's path, and of RFC 8414 section 3.1, which inserts it before.
 */
export function metadataUrlsOf(issuer: string): readonly [string, string] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ]
}

/** The members of metadata that are used. */
export type MetadataUri = 'jwks_uri' | 'introspection_endpoint' | 'userinfo_endpoint'

/**
 * Returns a URL in a metadata document. Throws `MetadataRefused`, or `JsonRefused`, unless
 * the document's `issuer` is exactly the expected one (RFC 8414 section 3.3) and the URL is
 * acceptable: https, and on a host with a name unless it is the issuer's own host. Otherwise, a
 * document could send requests to addresses of the gateway's network.
 */
export function metadataUriIn(
  text: string,
  issuer: string,
  member: MetadataUri = 'jwks_uri',
): string {
  const metadata = parseStrictJson(text, { maxDepth: MAX_JSON_DEPTH })
  const { issuer: named, [member]: uri } = (metadata ?? {}) as Readonly<Record<string, unknown>>
  if (named !== issuer) {
    throw new MetadataRefused(`has the issuer ${seen(named)}, expected ${seen(issuer)}`)
  }
  if (typeof uri !== 'string' || !isAcceptable(uri, issuer)) {
    throw new MetadataRefused(`has an unacceptable ${member} ${seen(uri)}`)
  }
  return uri
}

const seen = (value: unknown) => `${JSON.stringify(value)}`.slice(0, MAX_SEEN_CHARS)

/**
 * Reports whether a URL in the metadata of an issuer may be called: see {@link metadataUriIn}. An
 * issuer on a loopback address, in development, may name any of them.
 */
export function isAcceptable(uri: string, issuer: string): boolean {
  if (!httpUrl.safeParse(uri).success || !isPrivateLine(uri)) return false
  const target = new URL(uri)
  const own = new URL(issuer)
  // An issuer on this machine, in development, may have its key set at another port.
  if (own.protocol === 'http:') return true
  if (target.protocol !== 'https:') return false
  return target.hostname === own.hostname || !UNNAMED_HOST.test(target.hostname)
}

/** An address, or this machine. A URL parser has normalized all spellings of IPv4 addresses. */
const UNNAMED_HOST = /^\[|^\d+(\.\d+){3}$|(^|\.)localhost\.?$/

/**
 * Creates the locator of an issuer's key set, or of an endpoint, in the metadata at `urls` (default:
 * {@link metadataUrlsOf}). The location is cached for a minute.
 * While the metadata is not available or not correct, the last location is used for a day. Calls must
 * not overlap: a remote key set makes one at a time.
 */
export function createDiscovery(
  issuer: string,
  member: MetadataUri = 'jwks_uri',
  urls: readonly string[] = metadataUrlsOf(issuer),
) {
  let found: { readonly uri: string; readonly atMs: number } | undefined
  return {
    /** Throws `Unavailable`. Ends before `timeoutMs`, even if the metadata does not arrive. */
    async locate(nowMs: number, timeoutMs: number): Promise<string> {
      const last = found
      if (last === undefined) {
        found = { uri: await discover(issuer, member, urls, timeoutMs), atMs: nowMs }
        return found.uri
      }
      if (isWithin(last.atMs, FRESH_MS, nowMs)) return last.uri
      try {
        // The rest of the time is for the download of the key set from the last location.
        found = { uri: await discover(issuer, member, urls, timeoutMs / 2), atMs: nowMs }
        return found.uri
      } catch (error) {
        if (Math.abs(nowMs - last.atMs) >= MAX_STALE_MS) throw error
        return last.uri
      }
    },
  }
}

/** Throws the `Unavailable` of the first URL if no URL has the metadata. */
async function discover(
  issuer: string,
  member: MetadataUri,
  urls: readonly string[],
  timeoutMs: number,
): Promise<string> {
  const signal = AbortSignal.timeout(timeoutMs)
  let failure: Unavailable | undefined
  for (const url of urls) {
    try {
      return await uriAt(url, issuer, member, signal)
    } catch (error) {
      failure ??= error as Unavailable
      // The other URL is on the same host.
      if (failure.fault !== 'refused' && failure.fault !== 'malformed') break
    }
  }
  throw failure
}

async function uriAt(
  url: string,
  issuer: string,
  member: MetadataUri,
  signal: AbortSignal,
): Promise<string> {
  const options = { accept: 'application/json', maxBytes: MAX_METADATA_BYTES, signal }
  const { text } = await download(url, options)
  try {
    return metadataUriIn(text, issuer, member)
  } catch (cause) {
    throw new Unavailable('key_set', 'malformed', { cause })
  }
}
