/** What trusted proxies report: the address of a client, and the scheme, host and port of its request. */
import type { Context } from 'hono'
import { type ReportedOrigin, splitHost } from '../../http/public-origin.ts'
import { createLruMap } from '../../isolate/lru-map.ts'
import { receivedHeaders } from '../../middleware/request-headers.ts'
import type { TargetHeader } from './environment/server-environment.ts'
import { type Address, addressIn, type Network } from './environment/trusted-proxies.ts'
import { elementsIn, type ProxyHeader, readParameter } from './forwarded-hops.ts'
import type { NodeBindings } from './request-listener.ts'

/** Parsing an address takes as long as a whole stage. */
const MAX_CACHED_PEERS = 1_000
/** More proxies than any chain has. The address after so many is the client's. */
const MAX_TRUSTED_HOPS = 32

export interface TrustedProxiesOptions {
  readonly trusted: readonly Network[]
  /** In which they report the address of their client. Default `x-forwarded-for`. */
  readonly header?: ProxyHeader | undefined
  /** In which they report the scheme, the host and the port. Default none. */
  readonly targetHeaders?: readonly TargetHeader[] | undefined
}

export type TrustedProxies = ReturnType<typeof trustedProxies>

export function trustedProxies({
  trusted,
  header = 'x-forwarded-for',
  targetHeaders = [],
}: TrustedProxiesOptions) {
  const peers = createLruMap<string, Peer>({ max: MAX_CACHED_PEERS })
  const names: ReadonlySet<TargetHeader> = new Set(targetHeaders)

  const findPeer = (c: Context): Peer => peerOf((c.env as NodeBindings).incoming)

  function peerOf({ socket }: NodeBindings['incoming']): Peer {
    const { remoteAddress = '' } = socket
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

  /** Returns the address of the client, and what the proxy next to it has written. */
  function clientIn(value: string | undefined, peer: Peer): Client {
    let client: Client = { address: peer.address, element: undefined, at: -1 }
    if (value === undefined) return client
    for (const element of elementsIn(header, value)) {
      const hop = header === 'forwarded' ? readParameter(element, 'for') : element
      const address = hop === undefined ? undefined : addressIn(hop)
      client = { address: address?.toString(), element, at: client.at + 1 }
      if (address === undefined || !isTrusted(address, trusted)) break
      if (client.at + 1 === MAX_TRUSTED_HOPS) break
    }
    return client
  }

  return {
    /** Reports whether a trusted proxy made the connection. */
    isFromProxy: (incoming: NodeBindings['incoming']) => peerOf(incoming).isProxy,
    /**
     * Returns the client's address: that of the connection, unless a trusted proxy made it. Then it is
     * the rightmost address of the header that is not of a trusted proxy: each proxy appends the address
     * of its own client, and a client can write only what is left of that. Returns undefined if a trusted
     * proxy reported no address of its client.
     */
    addressOf(c: Context) {
      const peer = findPeer(c)
      if (!peer.isProxy) return peer.address
      return clientIn(receivedHeaders(c).get(header), peer).address
    },
    /**
     * Returns what the proxy next to the client reported about the request. Undefined if no trusted
     * proxy made the connection, or no header of theirs is read. Unreadable values are absent.
     */
    originOf(c: Context) {
      if (names.size === 0) return undefined
      const peer = findPeer(c)
      if (!peer.isProxy) return undefined
      const received = receivedHeaders(c)
      const { element = '', at } = clientIn(received.get(header), peer)
      const forwarded = names.has('forwarded') ? element : ''
      const read = (name: TargetHeader, parameter: string) =>
        (names.has(name) ? reportedIn(received.get(name), at) : undefined) ??
        readParameter(forwarded, parameter)
      return {
        scheme: schemeIn(read('x-forwarded-proto', 'proto')),
        host: hostIn(read('x-forwarded-host', 'host')),
        port: portIn(
          names.has('x-forwarded-port')
            ? reportedIn(received.get('x-forwarded-port'), at)
            : undefined,
        ),
      }
    },
  }
}

/** The other end of a connection. */
interface Peer {
  readonly address: string | undefined
  readonly isProxy: boolean
}

interface Client {
  readonly address: string | undefined
  readonly element: string | undefined
  /** How many proxies are between the client's proxy and the gateway. -1: the header is absent. */
  readonly at: number
}

const isTrusted = (address: Address, trusted: readonly Network[]): boolean =>
  trusted.some(
    ([network, bits]) => address.kind() === network.kind() && address.match(network, bits),
  )

/**
 * Returns the value of the proxy next to the client: the only one, or the one at its place from the
 * right if each proxy has appended its own. A client may have written what is further left.
 */
function reportedIn(value: string | undefined, at: number): string | undefined {
  if (value === undefined) return undefined
  const values = value.split(',').map((part) => part.trim())
  return values.length === 1 ? values[0] : values.at(-1 - Math.max(at, 0))
}

const SCHEMES: Readonly<Record<string, 'http' | 'https'>> = Object.assign(Object.create(null), {
  http: 'http',
  https: 'https',
  // Some proxies report the scheme of a WebSocket.
  ws: 'http',
  wss: 'https',
})

const schemeIn = (text = ''): ReportedOrigin['scheme'] => SCHEMES[text.toLowerCase()]

const hostIn = (text = ''): string | undefined =>
  splitHost(text) !== undefined && URL.canParse(`http://${text}`) ? text : undefined

const portIn = (text = ''): string | undefined =>
  /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535 ? text : undefined
