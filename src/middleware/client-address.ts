/** Determines the client's address from the one header that Cloudflare itself writes. */
import type { Context } from 'hono'
import { UNKNOWN_ADDRESS } from '../http/address-list.ts'
import { embeddedIpv4, isIpv4, parseAddress } from '../http/ip-address.ts'
import { createLruMap } from '../isolate/lru-map.ts'
import type { ClientAddressVariables } from './context.ts'
import { createMiddleware } from './create-middleware.ts'
import { receivedHeaders } from './request-headers.ts'

/** Parsing an IPv6 address takes as long as a whole stage. */
const MAX_CACHED_ADDRESSES = 1_000

/**
 * Normalizes an address to what one customer commonly holds: IPv6 to its /64 (`2001:db8:1:2::/64`),
 * an IPv4-mapped address and that of a NAT64 to IPv4. Undefined for shortened or octal IPv4, zones, lists and the like.
 */
export function addressGroup(text: string): string | undefined {
  if (isIpv4(text)) return text
  const groups = parseAddress(text)
  if (groups === undefined) return undefined
  const embedded = embeddedIpv4(groups)
  if (embedded !== undefined) return embedded
  const [a, b, c, d] = groups.map((group) => group.toString(16))
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
