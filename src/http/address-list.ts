/** Lists of addresses and CIDR ranges, as in a policy. */
import ipaddr from 'ipaddr.js'

/** Address of all requests for which the platform reported no client address. */
export const UNKNOWN_ADDRESS = 'unknown'
/** The /64 that Cloudflare reports for requests from every Worker of another zone. */
const WORKERS_ADDRESS = '2a06:98c0:3600:0::/64'

/** Unrelated callers share it: a ban would let each of them lock out the others. */
export const isSharedAddress = (address: string): boolean =>
  address === UNKNOWN_ADDRESS || address === WORKERS_ADDRESS

/** A smaller IPv6 range covers its whole /64, as `clientAddress` does. */
const IPV6_GROUP_BITS = 64
const IPV4_BITS = 32

/** Returns whether a normalized client address is in a list of addresses and CIDR ranges. */
export function createAddressList(list: readonly string[]): (address: string) => boolean {
  const ranges = list.map(parseRange)
  return function includes(address) {
    if (ranges.length === 0) return false
    const [text = ''] = address.split('/')
    if (!ipaddr.isValid(text)) return false
    const parsed = ipaddr.parse(text)
    return ranges.some(([base, bits]) => base.kind() === parsed.kind() && parsed.match(base, bits))
  }
}

function parseRange(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  const [base, bits] = text.includes('/') ? ipaddr.parseCIDR(text) : [ipaddr.parse(text), IPV4_BITS]
  if (base.kind() === 'ipv4') return [base, bits]
  return [base, text.includes('/') ? Math.min(bits, IPV6_GROUP_BITS) : IPV6_GROUP_BITS]
}
