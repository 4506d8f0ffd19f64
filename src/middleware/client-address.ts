/** Tells the client's address, from the one header that Cloudflare itself writes. */
import { createMiddleware } from 'hono/factory'
import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'
import { UNKNOWN_ADDRESS } from '../admission/address-list.ts'
import type { ClientAddressVariables } from '../context.ts'
import { receivedHeaders } from '../request-headers.ts'

/** Dotted decimal without leading zeros, which some readers take for octal. */
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/
/** Longest textual IPv6 address, `ffff:` seven times and a dotted quad. */
const MAX_IPV6_LENGTH = 45
/** Reading an IPv6 address takes as long as a whole stage; forgetting one costs no more. */
const MAX_REMEMBERED = 1_000

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
 * `unknown`, one bucket for all.
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
export const clientAddress = () => {
  const groups = new LRUCache<string, string>({ max: MAX_REMEMBERED })

  function groupOf(connecting: string | undefined): string {
    if (connecting === undefined) return UNKNOWN_ADDRESS
    const known = groups.get(connecting)
    if (known !== undefined) return known
    const group = addressGroup(connecting)
    // What is no address is not kept: it could be long, and varied for nothing.
    if (group !== undefined) groups.set(connecting, group)
    return group ?? UNKNOWN_ADDRESS
  }

  return createMiddleware<{ Variables: ClientAddressVariables }>(function clientAddress(c, next) {
    c.set('clientAddress', groupOf(receivedHeaders(c).get('cf-connecting-ip')))
    return next()
  })
}
