/** Calls of hosts that a caller names: only addresses of the public internet. */
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns'
import ipaddr from 'ipaddr.js'
import { Agent, fetch as undiciFetch } from 'undici'

type Resolved = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void

const CONNECT_TIMEOUT_MS = 3_000

/** Returns all addresses of a name, as `dns.lookup` does. */
export type Resolve = (
  host: string,
  options: LookupOptions & { readonly all: true },
  resolved: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Reports whether an address is one of the public internet. IPv4 in IPv6 counts as IPv4. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.process(text)
  // RFC 4291 section 2.4. IPv4-compatible addresses (`::127.0.0.1`) are unicast for ipaddr.js.
  const isGlobal = address instanceof ipaddr.IPv4 || ((address.parts[0] ?? 0) & 0xe000) === 0x2000
  return isGlobal && address.range() === 'unicast'
}

/**
 * Creates the look-up of a connection. It fails if one of the addresses of a name is not public. The
 * connection uses exactly the addresses that were checked, so that a later answer of the name server
 * changes nothing.
 */
export const publicLookup =
  (resolve: Resolve) =>
  (host: string, options: LookupOptions, resolved: Resolved): void =>
    resolve(host, { ...options, all: true }, (error, addresses) => {
      const isRefused =
        error === null && !addresses.every(({ address }) => isPublicAddress(address))
      const [first] = addresses ?? []
      if (error !== null || isRefused || first === undefined)
        resolved(error ?? new Error('not a public address'), [])
      else if (options.all) resolved(null, addresses)
      else resolved(null, first.address, first.family)
    })

/**
 * Creates the function. Does NOT check a host that is an address: the caller refuses those. `resolve`
 * is for tests. Default: the resolver of the system.
 */
export function createPublicFetch(resolve: Resolve = lookup): typeof fetch {
  const connect = { lookup: publicLookup(resolve), timeout: CONNECT_TIMEOUT_MS }
  const dispatcher = new Agent({ connect })
  return ((input: string, init: RequestInit) =>
    undiciFetch(input, { ...(init as object), dispatcher })) as unknown as typeof fetch
}
