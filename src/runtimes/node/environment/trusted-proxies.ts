/** Addresses and networks of IPv4 and IPv6. */
import ipaddr from 'ipaddr.js'
import * as z from 'zod/mini'
import { isIpv4 } from '../../../http/ip-address.ts'

export type Address = ipaddr.IPv4 | ipaddr.IPv6
/** An address and the number of bits that its network shares. */
export type Network = readonly [Address, number]

/** Prefix of the IPv4-mapped addresses. */
const MAPPED_BITS = 96
/** An address with a port: `192.0.2.1:443` or `[2001:db8::1]:443`. */
const WITH_PORT = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/

/** Parses a list of networks such as `10.0.0.0/8, 2001:db8::/32, 192.0.2.1`. */
export const networks = z.pipe(
  z.string(),
  z.transform((list, context) => {
    const found: Network[] = []
    for (const text of list.split(',').map((part) => part.trim())) {
      if (text === '') continue
      const network = parseNetwork(text)
      if (network !== undefined) found.push(network)
      else
        context.issues.push({
          code: 'custom',
          message: `${JSON.stringify(text)} is not a network`,
          input: list,
        })
    }
    return found
  }),
)

function parseNetwork(text: string): Network | undefined {
  if (ipaddr.isValidCIDR(text)) {
    const [base, bits] = ipaddr.parseCIDR(text)
    if (!(base instanceof ipaddr.IPv6) || !base.isIPv4MappedAddress()) return [base, bits]
    // Addresses are compared as IPv4. A range that has other addresses as well is a mistake.
    return bits < MAPPED_BITS ? undefined : [base.toIPv4Address(), bits - MAPPED_BITS]
  }
  const address = addressIn(text)
  return address && [address, address.kind() === 'ipv4' ? 32 : 128]
}

/**
 * Reads an address, with or without a port. An IPv4-mapped address becomes IPv4. The zone of a link-local
 * address is left out: it names an interface of this machine, and a client with it has an address as well.
 */
export function addressIn(text: string): Address | undefined {
  const [, inBrackets, beforePort] = WITH_PORT.exec(text) ?? []
  const bare = (inBrackets ?? beforePort ?? text).replace(/%[\w.-]+$/, '')
  if (bare.includes('%')) return undefined
  // `ipaddr.js` throws and catches an error for every text that is no IPv4 address, which takes 15 us.
  return isIpv4(bare) || ipaddr.IPv6.isValid(bare) ? ipaddr.process(bare) : undefined
}
