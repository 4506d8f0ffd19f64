/** Addresses of origins in the headers of their responses, as addresses of the gateway. */
import { type PublicOrigin, withPort } from '../http/public-origin.ts'
import { fieldOf, type ResponseFields } from '../http/shared-caches.ts'

/** Where a path of an origin is found at the gateway. */
export interface PublicPlace {
  readonly path: string
  /** Undefined: the host of the request. */
  readonly host?: string | undefined
}

/** An origin, and where its paths, which begin below its base URL, are found. */
export interface LocatedOrigin {
  readonly base: string
  /** Default: under the same path. */
  readonly placeOf?: ((path: string) => PublicPlace) | undefined
}

/** Returns the public URL for an absolute URL below an origin. Undefined for any other text. */
export type Locate = (location: string, at: PublicOrigin) => string | undefined

const unchanged = (path: string): PublicPlace => ({ path })

/** With or without a scheme: authority, path, and the rest. An authority with a user is not read. */
const ABSOLUTE =
  /^(?:https?:)?\/\/(\[[\d.:a-f]+\]|[\w.~-]+)(?::(\d*))?((?:\/[^?#\\]*)?)([?#][^\\]*)?$/i
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i

/**
 * Creates the function for a route. The first origin whose base URL contains the URL decides. The
 * scheme does not matter: an origin may have taken it from `X-Forwarded-Proto`, and its host from `Host`.
 */
export function createLocate(origins: readonly LocatedOrigin[]): Locate {
  const places = origins.map(({ base, placeOf = unchanged }) => {
    const { hostname, protocol, port, pathname } = new URL(base)
    return {
      hostname,
      isUsualPort: port === '',
      port: port || (protocol === 'https:' ? '443' : '80'),
      below: pathname.replace(/\/$/, ''),
      placeOf,
    }
  })
  return function locate(location, at) {
    const [, name = '', port = '', path = '', rest = ''] = ABSOLUTE.exec(location) ?? []
    if (name === '' || DOT_SEGMENT.test(path)) return undefined
    const found = places.find(
      (place) =>
        place.hostname === name.toLowerCase() &&
        (port === '' ? place.isUsualPort : place.port === port) &&
        `${path}/`.startsWith(`${place.below}/`),
    )
    if (found === undefined) return undefined
    const place = found.placeOf(path.slice(found.below.length) || '/')
    const host = place.host === undefined ? at.host : withPort(place.host, at)
    return `${at.scheme}://${host}${place.path}${rest}`
  }
}

/** A delay, before a URL that may be in quotation marks (HTML Standard, `Refresh`). */
const DELAY = /^[\d.]+\s*[;,]\s*(?:url\s*=\s*)?/i

/** Replaces addresses of an origin in `Location`, `Content-Location` and `Refresh`. */
export function publishLocations(fields: ResponseFields, locate: Locate, at: PublicOrigin): void {
  for (const name of ['location', 'content-location']) {
    const value = fieldOf(fields, name)
    const location = value === undefined ? undefined : locate(value, at)
    if (location !== undefined) fields.headers.set(name, location)
  }
  const refresh = fieldOf(fields, 'refresh')?.trim() ?? ''
  const [before = ''] = DELAY.exec(refresh) ?? []
  if (before === '') return
  const target = refresh.slice(before.length)
  const [first = ''] = target
  const isQuoted = /["']/.test(first) && target.length > 1 && target.endsWith(first)
  const mark = isQuoted ? first : ''
  const location = locate(target.slice(mark.length, target.length - mark.length), at)
  if (location !== undefined) fields.headers.set('refresh', before + mark + location + mark)
}
