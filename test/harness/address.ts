/** Unique client addresses. */

const HEXADECIMAL = 16

/**
 * Returns an address in a new IPv6 network for `CF-Connecting-IP`. Bad credentials are counted by
 * address, and those of one test must not count against the next.
 */
export function newAddress(): string {
  const groups = Array.from(crypto.getRandomValues(new Uint16Array(2)), (group) =>
    group.toString(HEXADECIMAL),
  )
  return `2001:db8:${groups.join(':')}::1`
}

/**
 * Returns the headers that name the address of a client. Each runtime trusts one of them: on Workers the
 * header of Cloudflare, on Node that of the proxy, which is the test.
 */
export const fromAddress = (address: string) => ({
  'cf-connecting-ip': address,
  'x-forwarded-for': address,
})
