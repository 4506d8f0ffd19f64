/** Lists of addresses and CIDR ranges, as in a policy. */
import { type AddressRange, isInRange, parseAddress, parseRange } from './ip-address.ts'

/** Address of all requests for which the platform reported no client address. */
export const UNKNOWN_ADDRESS = 'unknown'
/** The /64 that Cloudflare reports for requests from every Worker of another zone. */
const WORKERS_ADDRESS = '2a06:98c0:3600:0::/64'

/** Unrelated callers share it: a ban would let each of them lock out the others. */
export const isSharedAddress = (address: string): boolean =>
  address === UNKNOWN_ADDRESS || address === WORKERS_ADDRESS

/** A smaller IPv6 range covers its whole /64, as `clientAddress` does. */
const IPV6_GROUP_BITS = 64

/**
 * Returns whether a normalized client address is in a list of addresses and CIDR ranges. Throws a
 * `TypeError` for an entry that is neither.
 */
export function createAddressList(list: readonly string[]): (address: string) => boolean {
  const ranges = list.map(readRange)
  return function includes(address) {
    if (ranges.length === 0) return false
    const [text = ''] = address.split('/')
    const parsed = parseAddress(text)
    return parsed !== undefined && ranges.some((range) => isInRange(parsed, range))
  }
}

function readRange(text: string): AddressRange {
  const range = parseRange(text)
  if (range === undefined) throw new TypeError(`${text}: must be an address or a CIDR range`)
  const isIpv6 = range.groups.length > 2
  return isIpv6 ? { ...range, bits: Math.min(range.bits, IPV6_GROUP_BITS) } : range
}
