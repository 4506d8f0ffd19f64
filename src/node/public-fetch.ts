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

/** Reports whether an address is one of the public internet. IPv4 in IPv6 counts as IPv4. */
export function isPublicAddress(text: string): boolean {
  return ipaddr.isValid(text) && ipaddr.process(text).range() === 'unicast'
}

/**
 * Resolves a name for a connection. Fails if one of its addresses is not public. The connection uses
 * exactly the addresses that were checked, so that a later answer of the name server changes nothing.
 */
function lookupPublic(host: string, options: LookupOptions, resolved: Resolved): void {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    const isRefused = error === null && !addresses.every(({ address }) => isPublicAddress(address))
    const [first] = addresses ?? []
    if (error !== null || isRefused || first === undefined)
      resolved(error ?? new Error('not a public address'), [])
    else if (options.all) resolved(null, addresses)
    else resolved(null, first.address, first.family)
  })
}

/** Creates the function. Does NOT check a host that is an address: the caller refuses those. */
export function createPublicFetch(): typeof fetch {
  const dispatcher = new Agent({ connect: { lookup: lookupPublic, timeout: CONNECT_TIMEOUT_MS } })
  return ((input: string, init: RequestInit) =>
    undiciFetch(input, { ...(init as object), dispatcher })) as unknown as typeof fetch
}
