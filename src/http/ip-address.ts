/** Parses the text of addresses and CIDR ranges. Strict: what some parsers read in two ways is no address. */

/** Groups of 16 bits: two for IPv4, eight for IPv6. */
export type AddressGroups = readonly number[]

export interface AddressRange {
  readonly groups: AddressGroups
  /** Length of the prefix. */
  readonly bits: number
}

/** Dotted decimal without leading zeros, which some parsers read as octal. */
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/
const IPV6_GROUP = /^[\da-f]{1,4}$/i
/** Longest textual IPv6 address: six groups and a dotted quad. */
const MAX_IPV6_LENGTH = 45
const IPV6_GROUPS = 8
const BITS_PER_GROUP = 16
const BITS_PER_BYTE = 8
/** Prefix of the IPv4-mapped addresses. */
const MAPPED_BITS = 96
const PREFIX = /^\d{1,3}$/
/** `::ffff:0:0/96` (RFC 4291 section 2.5.5.2) and `64:ff9b::/96` (RFC 6052 section 2.1). */
const IPV4_PREFIXES = /^(?:0,0,0,0,0,65535|100,65435,0,0,0,0),/
/** IPv4 of private networks and of the machine itself. No NAT64 has such a client (RFC 6052 section 3.1). */
const LOCAL_IPV4 =
  /^(?:0|10|127|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\./

/** Reports whether the text is an IPv4 address in dotted decimal. */
export const isIpv4 = (text: string): boolean => IPV4.test(text)

/** Returns the two groups of an IPv4 address, or the eight groups of an IPv6 address without a zone. */
export function parseAddress(text: string): AddressGroups | undefined {
  return isIpv4(text) ? groupsOfIpv4(text) : parseIpv6(text)
}

/**
 * Returns an address with its prefix; without a slash, the prefix is the whole address. A range of IPv4-mapped
 * addresses is a range of IPv4, as the gateway reads such addresses. Returns undefined if it also contains others, and
 * for a range of a NAT64, whose clients are read as IPv4.
 */
export function parseRange(text: string): AddressRange | undefined {
  const [base = '', prefix, ...more] = text.split('/')
  const groups = parseAddress(base)
  if (groups === undefined || more.length > 0) return undefined
  const most = groups.length * BITS_PER_GROUP
  const given = PREFIX.test(prefix ?? '') ? Number(prefix) : most + 1
  const bits = prefix === undefined ? most : given
  if (bits > most) return undefined
  if (!IPV4_PREFIXES.test(groups.join())) return { groups, bits }
  const isMapped = groups[5] === 0xffff
  return !isMapped || bits < MAPPED_BITS
    ? undefined
    : { groups: groups.slice(-2), bits: bits - MAPPED_BITS }
}

/**
 * Returns the address inside of an IPv4-mapped IPv6 address (`::ffff:203.0.113.7`), or inside of one that a NAT64
 * writes for an IPv4 client (`64:ff9b::203.0.113.7`), as text. Undefined behind a NAT64 for an address that no client has.
 */
export function embeddedIpv4(groups: AddressGroups): string | undefined {
  if (!IPV4_PREFIXES.test(groups.join())) return undefined
  const last = groups.slice(-2)
  const text = last.flatMap((group) => [group >> BITS_PER_BYTE, group & 0xff]).join('.')
  return groups[0] !== 0 && LOCAL_IPV4.test(text) ? undefined : text
}

/** Reports whether an address is in a range. An IPv4 address is in no range of IPv6. */
export function isInRange(address: AddressGroups, { groups, bits }: AddressRange): boolean {
  if (address.length !== groups.length) return false
  return groups.every((group, index) => {
    const free = Math.min(Math.max((index + 1) * BITS_PER_GROUP - bits, 0), BITS_PER_GROUP)
    return group >> free === (address[index] ?? 0) >> free
  })
}

function parseIpv6(text: string): AddressGroups | undefined {
  if (text.length > MAX_IPV6_LENGTH) return undefined
  const lastStart = text.lastIndexOf(':') + 1
  const last = text.slice(lastStart)
  if (!isIpv4(last)) return parseGroups(text)
  const end = groupsOfIpv4(last).map((group) => group.toString(16))
  return parseGroups(text.slice(0, lastStart) + end.join(':'))
}

function parseGroups(text: string): AddressGroups | undefined {
  const [before = '', after, more] = text.split('::')
  const first = groupsIn(before)
  const last = groupsIn(after ?? '')
  if (first === undefined || last === undefined || more !== undefined) return undefined
  const missing = IPV6_GROUPS - first.length - last.length
  if (after === undefined ? missing !== 0 : missing < 1) return undefined
  return [...first, ...Array<number>(missing).fill(0), ...last]
}

function groupsIn(text: string): AddressGroups | undefined {
  if (text === '') return []
  const groups = text.split(':')
  if (!groups.every((group) => IPV6_GROUP.test(group))) return undefined
  return groups.map((group) => Number.parseInt(group, 16))
}

function groupsOfIpv4(text: string): AddressGroups {
  const [a = 0, b = 0, c = 0, d = 0] = text.split('.').map(Number)
  return [(a << BITS_PER_BYTE) | b, (c << BITS_PER_BYTE) | d]
}
