import { expect, test } from 'vitest'
import { addressGroup } from '../../../src/middleware/client-address.ts'
import { addressIn } from '../../../src/runtimes/node/environment/trusted-proxies.ts'

test.each([
  ['fe80::1:2%eth0', 'fe80:0:0:0::/64'],
  ['[fe80::1%en-1.2]:443', 'fe80:0:0:0::/64'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['192.0.2.7:80', '192.0.2.7'],
])('a client with the address %s is counted as %s, not as unknown [S79]', (text, group) => {
  expect(addressGroup(addressIn(text)?.toString() ?? '')).toBe(group)
})

test.each([
  '',
  '%',
  '010.0.0.1',
  '1.2.3',
  '0x7f.0.0.1',
  'fe80::1%',
  'fe80::1%a%b',
  '192.0.2.7%%',
  'unknown',
])('%j is no address', (text) => {
  expect(addressIn(text)).toBeUndefined()
})
