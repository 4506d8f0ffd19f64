/** Addresses that nobody else has sent anything from. */

const HEXADECIMAL = 16

/**
 * Another IPv6 network each time, for `CF-Connecting-IP`: bad credentials are counted by address, and
 * what a test sends on purpose must not be on the account of the next.
 */
export function newAddress(): string {
  const groups = Array.from(crypto.getRandomValues(new Uint16Array(2)), (group) =>
    group.toString(HEXADECIMAL),
  )
  return `2001:db8:${groups.join(':')}::1`
}
