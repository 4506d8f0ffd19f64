/** Determines the client's address from the one header that Cloudflare itself writes. */
import type { Context } from 'hono'
import ipaddr from 'ipaddr.js'
import { UNKNOWN_ADDRESS } from '../http/address-list.ts'
import { createLruMap } from '../isolate/lru-map.ts'
import type { ClientAddressVariables } from './context.ts'
import { createMiddleware } from './create-middleware.ts'
import { receivedHeaders } from './request-headers.ts'

/** Dotted decimal without leading zeros, which some parsers read as octal. */
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/
/** Longest textual IPv6 address: six groups and a dotted quad. */
const MAX_IPV6_LENGTH = 45
/** Parsing an IPv6 address takes as long as a whole stage. */
const MAX_CACHED_ADDRESSES = 1_000

/**
 * Normalizes an address to what one customer commonly holds: IPv6 to its /64 (`2001:db8:1:2::/64`),
 * an IPv4-mapped address to IPv4. Undefined for shortened or octal IPv4, zones, lists and the like.
 */
export function addressGroup(text: string): string | undefined {
  if (IPV4.test(text)) return text
  if (text.length > MAX_IPV6_LENGTH || text.includes('%') || !ipaddr.IPv6.isValid(text))
    return undefined
  // The parser accepts leading zeros and hexadecimal in the dotted end of a mapped address.
  if (text.includes('.') && !IPV4.test(text.slice(text.lastIndexOf(':') + 1))) return undefined
  const address = ipaddr.IPv6.parse(text)
  if (address.isIPv4MappedAddress()) return address.toIPv4Address().toString()
  const [a, b, c, d] = address.parts.map((part) => part.toString(16))
  return `${a}:${b}:${c}:${d}::/64`
}

export interface ClientAddressOptions {
  /** Returns the address as the platform or a trusted proxy reports it. Default: see below. */
  readonly addressOf?: ((c: Context) => string | undefined) | undefined
}

/** Cloudflare overwrites this header. */
export const connectingAddress = (c: Context): string | undefined =>
  receivedHeaders(c).get('cf-connecting-ip')

/**
 * Sets `clientAddress`, by default from `CF-Connecting-IP` alone, which only Cloudflare overwrites:
 * elsewhere (`wrangler dev`, another runtime) a client can forge it, as it can forge
 * `X-Forwarded-For`. A missing or invalid address is `unknown`, one bucket for all.
 *
 * @example
 * ```ts
 * app.use(clientAddress())
 * app.get('/', (c) => c.text(clientAddressOf(c)))
 * ```
 */
export const clientAddress = ({ addressOf = connectingAddress }: ClientAddressOptions = {}) => {
  const groups = createLruMap<string, string>({ max: MAX_CACHED_ADDRESSES })

  function normalizeAddress(connecting: string | undefined): string {
    if (connecting === undefined) return UNKNOWN_ADDRESS
    const known = groups.get(connecting)
    if (known !== undefined) return known
    const group = addressGroup(connecting)
    // Invalid addresses are not cached: a client could fill the cache with long and varied texts.
    if (group !== undefined) groups.set(connecting, group)
    return group ?? UNKNOWN_ADDRESS
  }

  return createMiddleware<{ Variables: ClientAddressVariables }>(function clientAddress(c, next) {
    c.set('portcullis.clientAddress', normalizeAddress(addressOf(c)))
    return next()
  })
}
