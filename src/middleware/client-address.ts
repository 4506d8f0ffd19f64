/** Tells the client's address, from the one header that Cloudflare itself writes. */
import { createMiddleware } from 'hono/factory'
import ipaddr from 'ipaddr.js'
import type { ClientAddressVariables } from '../context.ts'

/** The bucket that everybody shares of whom the platform told no address. */
export const UNKNOWN_ADDRESS = 'unknown'

/** Dotted decimal without leading zeros, which some readers take for octal. */
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/
/** Longest textual IPv6 address, `ffff:` seven times and a dotted quad. */
const MAX_IPV6_LENGTH = 45

/**
 * Normalises an address to what one customer commonly holds: an IPv4 address as it is, an IPv6
 * address as its /64 (`2001:db8:1:2::/64`, four groups, lower case), an IPv4-mapped one as IPv4.
 * Undefined for anything else, such as shortened or octal IPv4, zones, and lists.
 */
export function addressGroup(text: string): string | undefined {
  if (IPV4.test(text)) return text
  if (text.length > MAX_IPV6_LENGTH || text.includes('%') || !ipaddr.IPv6.isValid(text))
    return undefined
  const address = ipaddr.IPv6.parse(text)
  if (address.isIPv4MappedAddress()) return address.toIPv4Address().toString()
  const [a, b, c, d] = address.parts.map((part) => part.toString(16))
  return `${a}:${b}:${c}:${d}::/64`
}

/**
 * Sets `clientAddress` from `CF-Connecting-IP` and from nothing else: `X-Forwarded-For`,
 * `X-Real-IP`, `Forwarded` and the like are what a client likes to say. IPv6 is grouped by /64,
 * because one customer has 2^64 addresses to take turns with. A missing or invalid address is
 * {@link UNKNOWN_ADDRESS}, one bucket for all.
 *
 * Trusts that the Worker is reached through Cloudflare, which overwrites the header. Elsewhere
 * (`wrangler dev`, another runtime) a client can write it.
 *
 * @example
 * ```ts
 * app.use(clientAddress())
 * app.get('/', (c) => c.text(clientAddressOf(c)))
 * ```
 */
export const clientAddress = () =>
  createMiddleware<{ Variables: ClientAddressVariables }>(async function clientAddress(c, next) {
    const connecting = c.req.raw.headers.get('CF-Connecting-IP')
    c.set('clientAddress', (connecting && addressGroup(connecting)) || UNKNOWN_ADDRESS)
    await next()
  })
