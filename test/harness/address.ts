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
