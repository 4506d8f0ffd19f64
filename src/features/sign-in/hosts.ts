/** The hosts of a policy. Browsers sign in at the host of `PUBLIC_URL`, and each host has its own session. */
import { coversHost, hostOf } from '../../http/host.ts'

export type Hosts = ReturnType<typeof createHosts>

/** One label, as a browser sends it: a pattern with a wildcard must not cover other texts. */
const NAME = /^[a-z\d-]{1,63}(?:\.[a-z\d-]{1,63})+$/

/**
 * Creates the hosts of the routes of a policy. `PUBLIC_URL` gives them their scheme and port, so that no
 * text of a request becomes a part of an address.
 */
export function createHosts(
  routes: readonly { readonly host?: string | undefined }[],
  publicUrl: string,
) {
  const own = new URL(publicUrl)
  const patterns = [...new Set(routes.flatMap(({ host }) => host ?? []))]
  const isOther = (host: string) =>
    host !== own.hostname &&
    NAME.test(host) &&
    patterns.some((pattern) => coversHost(pattern, host))
  const port = own.port === '' ? '' : `:${own.port}`

  function otherOf(url: string): string | undefined {
    if (patterns.length === 0) return undefined
    const host = hostOf(url)
    return isOther(host) ? host : undefined
  }
  const originOf = (host: string) => (isOther(host) ? `${own.protocol}//${host}${port}` : undefined)
  return {
    /**
     * Returns the host of a request if the policy has it and it is not that of `PUBLIC_URL`. Undefined: the
     * sign-in is at this host.
     */
    otherOf,
    /** Returns the origin of such a host, by its name in lower case. Undefined: the policy does not have it. */
    originOf,
    /** Returns the origin whose pages may send requests with unsafe methods to the host of a request. */
    ownOriginOf: (url: string): string => originOf(otherOf(url) ?? '') ?? own.origin,
  }
}
