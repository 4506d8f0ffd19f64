/** Lists of addresses, as a policy writes them. */
import ipaddr from 'ipaddr.js'

/** The bucket that everybody shares of whom the platform told no address. */
export const UNKNOWN_ADDRESS = 'unknown'
/**
 * What Cloudflare tells of every request that a Worker of another zone makes, whoever's it is:
 * `2a06:98c0:3600::103`, by its network.
 */
const WORKERS_ADDRESS = '2a06:98c0:3600:0::/64'

/**
 * Whether callers who have nothing to do with each other share an address, as a rule: a ban of it
 * would let each lock out all others.
 */
export const isAnybodys = (address: string): boolean =>
  address === UNKNOWN_ADDRESS || address === WORKERS_ADDRESS

/** What of an IPv6 address tells its holder apart; see `clientAddress`. */
const IPV6_GROUP_BITS = 64
const IPV4_BITS = 32

/**
 * Makes the test whether a normalised client address is in one of the addresses and CIDR ranges. An
 * IPv6 range smaller than a /64 stands for all of it. False for what is no address.
 */
export function createAddressList(list: readonly string[]): (address: string) => boolean {
  const ranges = list.map(rangeOf)
  return function includes(address) {
    if (ranges.length === 0) return false
    const [text = ''] = address.split('/')
    if (!ipaddr.isValid(text)) return false
    const parsed = ipaddr.parse(text)
    return ranges.some(([base, bits]) => base.kind() === parsed.kind() && parsed.match(base, bits))
  }
}

function rangeOf(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  const [base, bits] = text.includes('/') ? ipaddr.parseCIDR(text) : [ipaddr.parse(text), IPV4_BITS]
  if (base.kind() === 'ipv4') return [base, bits]
  return [base, text.includes('/') ? Math.min(bits, IPV6_GROUP_BITS) : IPV6_GROUP_BITS]
}
