import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'
import * as z from 'zod/mini'
import { createAddressList } from '../../src/http/address-list.ts'
import { embeddedIpv4, isInRange, parseAddress, parseRange } from '../../src/http/ip-address.ts'
import { type Network, networks } from '../../src/runtimes/node/environment/trusted-proxies.ts'

/** Repeats the same texts in each run. */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
}

const random = createRandom(7)
const pick = <Item>(items: readonly [Item, ...Item[]]): Item =>
  items[random(items.length)] ?? items[0]

const GROUPS = ['0', '1', 'ff', 'FFFF', '2001', 'db8', '0001', '8000'] as const
const ODD_PIECES = ['', '10000', '00001', 'g', '1.2.3.4', '01.2.3.4', '%e'] as const
/** A piece of an address: one of 20 is odd, or has its place at the end only. */
const piece = () => (random(20) === 0 ? pick(ODD_PIECES) : pick(GROUPS))
const TEXTS: readonly string[] = [
  ...Array.from({ length: 6_000 }, () => {
    const [before, after] = [0, 1].map(() => Array.from({ length: random(6) }, piece).join(':'))
    return `${before}${pick([':', '::', '::'])}${after}`
  }),
  ...Array.from({ length: 2_000 }, () =>
    Array.from({ length: 3 + random(3) }, () => pick(['0', '7', '255', '256', '01', '', '1'])).join(
      '.',
    ),
  ),
  ...['::', ':::', '::1', '1::', ':1::', '1:2:3:4:5:6:7::', '::2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8::'],
  ...[
    '::1.2.3.4',
    '64:ff9b::1.2.3.4',
    '1.2.3.4::',
    '::1.2.3.4:5',
    '::ffff:1.2.3.04',
    '1:2:3:4:5:6:7:1.2.3.4',
  ],
]

/** IPv4-compatible addresses (RFC 4291 section 2.5.5.1), which the library reads as IPv4-mapped ones. */
const COMPATIBLE = /^::[\d.]+\.\d+$/

/** What the library accepts, and this parser does not: zones, long groups and odd ends. */
const isOdd = (text: string): boolean =>
  text.includes('%') ||
  text.length > 45 ||
  text.split(':').some((group) => group.length > 4 && !group.includes('.')) ||
  (text.includes('.') && !ipaddr.IPv4.isValidFourPartDecimal(text.slice(text.lastIndexOf(':') + 1)))

function groupsByLibrary(text: string): readonly number[] | undefined {
  if (isOdd(text)) return undefined
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) {
    const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv4.parse(text).octets
    return [a * 256 + b, c * 256 + d]
  }
  return ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text).parts : undefined
}

test('of 8,000 texts, the same are addresses as in another parser, with the same groups [S56]', () => {
  const valid = TEXTS.filter((text) => parseAddress(text) !== undefined)
  expect(valid.length).toBeGreaterThan(1_000)
  const different = TEXTS.filter(
    (text) =>
      !COMPATIBLE.test(text) && parseAddress(text)?.join() !== groupsByLibrary(text)?.join(),
  )
  expect(different).toEqual([])
})

test('an address is in the same ranges as in another parser, for each length of prefix', () => {
  const groups = ['0', '1', '8000', 'ffff', 'fffe'] as const
  const ipv6 = () => Array.from({ length: 8 }, () => pick(groups)).join(':')
  const ipv4 = () => Array.from({ length: 4 }, () => pick(['0', '1', '128', '255'])).join('.')
  for (let count = 0; count < 2_000; count++) {
    const [one, other] = [pick([ipv4, ipv6])(), pick([ipv4, ipv6])()]
    if (embeddedIpv4(parseAddress(one) ?? []) !== undefined) continue
    const range = `${one}/${random(one.includes(':') ? 129 : 33)}`
    const [known, parsed, address] = [ipaddr.parse(other), parseRange(range), parseAddress(other)]
    if (parsed === undefined || address === undefined) throw new Error(`${range} or ${other}`)
    const [base, bits] = ipaddr.parseCIDR(range)
    const expected = known.kind() === base.kind() && known.match(base, bits)
    expect(isInRange(address, parsed), `${other} in ${range}`).toBe(expected)
  }
})

test.each([
  '10.0.0.0/33',
  '::/129',
  '10.0.0.0/',
  '10.0.0.0/8/8',
  '10.0.0.0/-1',
  '10.0.0.0/0x8',
  '10/8',
  '',
  '/8',
])('%j is no range', (text) => {
  expect(parseRange(text)).toBeUndefined()
})

/** Every place that accepts ranges, with a function that reports whether one of them has an address. */
const PLACES = {
  'a list of the policy, such as `abuse.exempt`': (range: string, address: string) =>
    createAddressList([range])(address),
  TRUSTED_PROXIES: (range: string, address: string) => {
    const known = ipaddr.process(address)
    const isIn = ([base, bits]: Network) => base.kind() === known.kind() && known.match(base, bits)
    return z.parse(networks, range).some(isIn)
  },
}

describe.each(Object.entries(PLACES))('an IPv4-mapped range in %s', (_, includes) => {
  test.each([
    ['::ffff:10.0.0.0/104', '10.255.0.1', '11.0.0.1'],
    ['::ffff:a00:0/104', '10.1.2.3', '9.255.255.255'],
    ['::ffff:192.0.2.7', '192.0.2.7', '192.0.2.8'],
    ['::ffff:192.0.2.7/128', '192.0.2.7', '192.0.2.6'],
    ['::ffff:0.0.0.0/96', '203.0.113.9', '2001:db8::1'],
  ])('%s is the range of IPv4', (range, inside, outside) => {
    expect([includes(range, inside), includes(range, outside)]).toEqual([true, false])
  })

  test.each(['::ffff:10.0.0.0/95', '::ffff:10.0.0.0/8', '::ffff:0:0/0'])(
    '%s is a mistake: no address has such a prefix',
    (range) => {
      expect(() => includes(range, '10.0.0.1')).toThrow(range)
    },
  )

  test('is no other range of IPv6', () => {
    expect(includes('::/0', '2001:db8::1')).toBe(true)
    expect(includes('2001:db8::/32', '2001:db8:1::2')).toBe(true)
    expect(includes('2001:db8::/32', '10.0.0.1')).toBe(false)
  })
})

test.each(['64:ff9b::/96', '64:ff9b::203.0.113.7', '64:ff9b::/64'])(
  'a range of a NAT64, %s, is no range: its clients are read as IPv4',
  (range) => expect(parseRange(range)).toBeUndefined(),
)

test('only an IPv4-mapped address and that of a NAT64 have an IPv4 address inside', () => {
  const mapped = (text: string) => embeddedIpv4(parseAddress(text) ?? [])
  expect(mapped('::ffff:203.0.113.255')).toBe('203.0.113.255')
  expect(mapped('::FFFF:0:0')).toBe('0.0.0.0')
  expect(parseAddress('::1.2.3.4')).toEqual([0, 0, 0, 0, 0, 0, 0x102, 0x304])
  expect(mapped('64:ff9b::203.0.113.7')).toBe('203.0.113.7')
  const others = ['203.0.113.7', '::203.0.113.7', '::1:ffff:1:1', '64:ff9b:1::1.2.3.4', 'x']
  // No NAT64 has a client with an address of a private network (RFC 6052 section 3.1).
  const local = ['10.0.0.1', '127.0.0.1', '100.64.0.1', '169.254.1.1', '172.31.0.1', '192.168.0.1']
  for (const text of [...others, ...local.map((address) => `64:ff9b::${address}`)])
    expect(mapped(text)).toBeUndefined()
  for (const address of ['100.128.0.1', '172.32.0.1', '11.0.0.1'])
    expect(mapped(`64:ff9b::${address}`)).toBe(address)
})
