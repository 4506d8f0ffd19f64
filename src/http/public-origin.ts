/** The scheme, host and port under which a client reaches the gateway. */
import type { Context } from 'hono'
import { createLruMap } from '../isolate/lru-map.ts'

type Scheme = 'http' | 'https'

export interface PublicOrigin {
  readonly scheme: Scheme
  /** In lower case, with the port unless it is the default of the scheme: `api.example.com:8443`. */
  readonly host: string
  readonly port: string
}

/** What a trusted proxy has reported about the request that it received. */
export interface ReportedOrigin {
  readonly scheme?: Scheme | undefined
  /** With or without a port. */
  readonly host?: string | undefined
  readonly port?: string | undefined
}

/** The authority is valid: the runtime or `canonicalPath` has checked it. */
const BEGINNING = /^(https?):\/\/([^/?#]*)/i
const AUTHORITY = /^(\[[\d.:a-f]+\]|[\w.~-]+)(?::(\d{1,5}))?$/i
const DEFAULT_PORT = { http: '80', https: '443' } as const
/** Most requests have one of a few hosts. */
const MAX_CACHED = 100

/** Returns the name and the port of a host. Undefined if it has another form. */
export function splitHost(host: string): { name: string; port: string | undefined } | undefined {
  const [, name, port] = AUTHORITY.exec(host) ?? []
  return name === undefined ? undefined : { name, port }
}

/** Returns a host with the port, unless it is the default of the scheme. */
export const withPort = (name: string, { scheme, port }: Omit<PublicOrigin, 'host'>): string =>
  port === DEFAULT_PORT[scheme] ? name : `${name}:${port}`

/** Reads a host for comparison: in lower case, without the dot of the DNS root. */
const normalized = (name: string): string => name.toLowerCase().replace(/\.$/, '')

/**
 * Creates the function that returns the origin under which a client reaches the gateway, for the URL
 * of its request. A trusted proxy's report comes first. Without one, the scheme and the port are those
 * of `publicUrl` if the request has its host, because only a proxy in front of the gateway knows them.
 * Otherwise they are those of the connection. Nothing else that a client sends can change the scheme.
 */
export function publicOrigins(
  publicUrl: string | undefined,
): (url: string, reported?: ReportedOrigin) => PublicOrigin {
  const known = createLruMap<string, PublicOrigin>({ max: MAX_CACHED })
  const own = publicUrl === undefined ? undefined : new URL(publicUrl)
  const ownScheme = own?.protocol === 'https:' ? 'https' : 'http'
  const ownPort = own?.port || DEFAULT_PORT[ownScheme]

  function resolve(connection: Scheme, host: string, reported: ReportedOrigin): PublicOrigin {
    const { name: given, port: sent } = splitHost(host) ?? { name: host, port: undefined }
    const name = normalized(given)
    const isOwn = own?.hostname === name && (sent === undefined || sent === ownPort)
    const scheme = reported.scheme ?? (isOwn && connection === 'http' ? ownScheme : connection)
    const usual = DEFAULT_PORT[scheme]
    const port = reported.port ?? sent ?? (isOwn && scheme === ownScheme ? ownPort : usual)
    return { scheme, host: withPort(name, { scheme, port }), port }
  }

  return function publicOriginOf(url, reported) {
    const [beginning = '', scheme = '', host = ''] = BEGINNING.exec(url) ?? []
    const connection = scheme.toLowerCase() === 'https' ? 'https' : 'http'
    if (reported !== undefined) return resolve(connection, reported.host ?? host, reported)
    const before = known.get(beginning)
    if (before !== undefined) return before
    const origin = resolve(connection, host, {})
    known.set(beginning, origin)
    return origin
  }
}

/** Creates the function that returns the origin of the URL of a request. */
export function originOfRequest(): (c: Context) => PublicOrigin {
  const originOf = publicOrigins(undefined)
  return (c) => originOf(c.req.raw.url)
}
