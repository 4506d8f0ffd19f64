/** The address of a client behind trusted proxies. */
import type { Socket } from 'node:net'
import type { Context } from 'hono'
import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'
import { Misconfigured } from '../errors.ts'
import { receivedHeaders } from '../middleware/request-headers.ts'
import type { NodeBindings } from './request-listener.ts'

type Network = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

/** Parsing an address takes as long as a whole stage. */
const MAX_CACHED_PEERS = 1_000
/** More addresses than any chain of proxies has. */
const MAX_HOPS = 32
/** An address with a port: `192.0.2.1:443` or `[2001:db8::1]:443`. */
const WITH_PORT = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/

/** Parses a list of networks such as `10.0.0.0/8, 2001:db8::/32, 192.0.2.1`. Throws `Misconfigured`. */
export function trustedNetworks(list: string): readonly Network[] {
  const texts = list.split(',').map((text) => text.trim())
  const named = texts.filter((text) => text !== '')
  const wrong = named.filter((text) => networkOf(text) === undefined)
  if (wrong.length > 0) {
    const mistakes = wrong.map((text) => `TRUSTED_PROXIES: ${JSON.stringify(text)} is no network`)
    throw new Misconfigured('The environment', mistakes)
  }
  return named.map(networkOf).filter((network) => network !== undefined)
}

function networkOf(text: string): Network | undefined {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text)
  const address = addressIn(text)
  return address && [address, address.kind() === 'ipv4' ? 32 : 128]
}

/**
 * Creates the function that returns the client's address: that of the connection, unless a trusted
 * proxy made it. Then it is the rightmost address of `X-Forwarded-For` that is not of a trusted
 * proxy: each proxy appends the address of its own client, and a client can write only what is left
 * of that. Returns undefined for a list that is not readable up to there.
 */
export function forwardedAddress(trusted: readonly Network[]) {
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
    const hops =
      receivedHeaders(c)
        .get('x-forwarded-for')
        ?.split(',', MAX_HOPS + 1) ?? []
    if (hops.length > MAX_HOPS) return undefined
    let client = peer.address
    for (const hop of hops.reverse()) {
      const address = addressIn(hop.trim())
      client = address?.toString()
      if (address === undefined || !isTrusted(address, trusted)) break
    }
    return client
  }
}

/** The other end of a connection. */
interface Peer {
  readonly address: string | undefined
  readonly isProxy: boolean
}

const isTrusted = (address: Network[0], trusted: readonly Network[]): boolean =>
  trusted.some(
    ([network, bits]) => address.kind() === network.kind() && address.match(network, bits),
  )

/** Reads an address, with or without a port. An IPv4-mapped address becomes IPv4. */
function addressIn(text: string): Network[0] | undefined {
  const [, inBrackets, beforePort] = WITH_PORT.exec(text) ?? []
  const bare = inBrackets ?? beforePort ?? text
  const isAddress = ipaddr.IPv4.isValidFourPartDecimal(bare) || ipaddr.IPv6.isValid(bare)
  return isAddress ? ipaddr.process(bare) : undefined
}
