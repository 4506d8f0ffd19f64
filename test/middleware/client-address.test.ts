import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { addressGroup, clientAddress } from '../../src/middleware/client-address.ts'
import type { ClientAddressVariables } from '../../src/middleware/context.ts'
import { clientAddressOf } from '../../src/middleware/context.ts'

const app = new Hono<{ Variables: ClientAddressVariables }>()
app.use(clientAddress())
app.get('/', (c) => c.text(clientAddressOf(c)))

const seen = async (headers: Record<string, string>) => (await app.request('/', { headers })).text()

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['0.0.0.0', '0.0.0.0'],
  ['255.255.255.255', '255.255.255.255'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['::FFFF:cb00:7107', '203.0.113.7'],
  ['64:ff9b::203.0.113.7', '203.0.113.7'],
  ['64:ff9b::1:203.0.113.7', '64:ff9b:0:0::/64'],
  ['0000:0000:0000:0000:0000:ffff:198.168.100.107', '198.168.100.107'],
])('CF-Connecting-IP %s is the address %s [S56]', async (header, address) => {
  expect(await seen({ 'CF-Connecting-IP': header })).toBe(address)
})

test.each([
  '',
  'unknown',
  '203.0.113',
  '203.0.113.256',
  '203.0.113.07',
  '0xcb.0.113.7',
  '3405803783',
  '203.0.113.7:80',
  '203.0.113.7.',
  '203.0.113.7, 198.51.100.1',
  'fe80::1%eth0',
  '[2001:db8::1]',
  '2001:db8::1::2',
  '2001:db8:1:2::/64',
  `${'0:'.repeat(40)}1`,
  '::ffff:010.0.0.1',
  '::ffff:203.0.113.07',
  '::ffff:0x1.2.3.4',
  '::ffff:1.2.3.256',
  '::ffff:1.2.3',
  `::ffff:${'0'.repeat(38)}1.2.3.4`,
])('%j is not an address and counts in the shared bucket [S56]', async (header) => {
  expect(addressGroup(header)).toBeUndefined()
  expect(await seen({ 'CF-Connecting-IP': header })).toBe('unknown')
})

test.each([
  'X-Forwarded-For',
  'X-Real-IP',
  'Forwarded',
  'True-Client-IP',
  'Client-IP',
  'X-Client-IP',
  'X-Cluster-Client-IP',
  'CF_Connecting_IP',
  'CF-Connecting-IPv6',
])('%s is ignored [S56]', async (name) => {
  expect(await seen({ [name]: '198.51.100.1' })).toBe('unknown')
  expect(await seen({ [name]: '198.51.100.1', 'CF-Connecting-IP': '203.0.113.7' })).toBe(
    '203.0.113.7',
  )
})

test('another source of the address is normalized alike, and replaces the header', async () => {
  const behindProxy = new Hono<{ Variables: ClientAddressVariables }>()
  behindProxy.use(clientAddress({ addressOf: (c) => c.req.header('X-Real-IP') }))
  behindProxy.get('/', (c) => c.text(clientAddressOf(c)))
  const addressOf = async (headers: Record<string, string>) =>
    (await behindProxy.request('/', { headers })).text()
  expect(await addressOf({ 'X-Real-IP': '2001:db8:1:2:3::4' })).toBe('2001:db8:1:2::/64')
  expect(await addressOf({ 'CF-Connecting-IP': '192.0.2.1' })).toBe('unknown')
})
