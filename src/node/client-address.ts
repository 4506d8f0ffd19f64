/** The address of a client behind trusted proxies. */
import type { Socket } from 'node:net'
import type { Context } from 'hono'
import { LRUCache } from 'lru-cache'
import { receivedHeaders } from '../middleware/request-headers.ts'
import { type Address, addressIn, type Network } from '../validators/networks.ts'
import { hopsIn, type ProxyHeader } from './forwarded-hops.ts'
import type { NodeBindings } from './request-listener.ts'

/** Parsing an address takes as long as a whole stage. */
const MAX_CACHED_PEERS = 1_000
/** More proxies than any chain has. The address after so many is the client's. */
const MAX_TRUSTED_HOPS = 32

/**
 * Creates the function that returns the client's address: that of the connection, unless a trusted
 * proxy made it. Then it is the rightmost address of `header` that is not of a trusted
 * proxy: each proxy appends the address of its own client, and a client can write only what is left
 * of that. Returns undefined if a trusted proxy reported no address of its client.
 */
export function forwardedAddress(
  trusted: readonly Network[],
  header: ProxyHeader = 'x-forwarded-for',
) {
  const peers = new LRUCache<string, Peer>({ max: MAX_CACHED_PEERS })

  function peerOf({ remoteAddress = '' }: Pick<Socket, 'remoteAddress'>): Peer {
    const known = peers.get(remoteAddress)
    if (known !== undefined) return known
    const address = addressIn(remoteAddress)
    const peer = {
      address: address?.toString(),
      isProxy: address !== undefined && isTrusted(address, trusted),
    }
    peers.set(remoteAddress, peer)
    return peer
  }

  return function addressOf(c: Context): string | undefined {
    const peer = peerOf((c.env as NodeBindings).incoming.socket)
    if (!peer.isProxy) return peer.address
    const value = receivedHeaders(c).get(header)
    let client = peer.address
    if (value === undefined) return client
    let trustedHops = 0
    for (const hop of hopsIn(header, value)) {
      const address = addressIn(hop)
      client = address?.toString()
      if (address === undefined || !isTrusted(address, trusted)) break
      trustedHops += 1
      if (trustedHops === MAX_TRUSTED_HOPS) break
    }
    return client
  }
}

/** The other end of a connection. */
interface Peer {
  readonly address: string | undefined
  readonly isProxy: boolean
}

const isTrusted = (address: Address, trusted: readonly Network[]): boolean =>
  trusted.some(
    ([network, bits]) => address.kind() === network.kind() && address.match(network, bits),
  )
