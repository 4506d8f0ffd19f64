import { expect, test } from 'vitest'
import { hopsIn } from '../../src/node/forwarded-hops.ts'

test.each([
  ['for=192.0.2.7', ['192.0.2.7']],
  ['For="[2001:db8::9]:443";proto=https', ['[2001:db8::9]:443']],
  ['by=203.0.113.1;for=192.0.2.7, for="192.0.2.8:80"', ['192.0.2.8:80', '192.0.2.7']],
  ['for="192.0.2.\\7"', ['192.0.2.7']],
  ['for=192.0.2.7;host="a, for=198.51.100.1"', ['192.0.2.7']],
  ['for=192.0.2.7;host="a, for=198.51.100.1;x=\\"\\""', ['192.0.2.7']],
  ['for=192.0.2.7;host="a;for=198.51.100.1"', ['192.0.2.7']],
  ['for=_hidden, for=unknown', ['unknown', '_hidden']],
  ['for="192.0.2.1, for=192.0.2.7', ['192.0.2.7', '']],
  ['for=192.0.2.1;x=", for="[2001:db8::9]"', ['[2001:db8::9]', '']],
  ['for=192.0.2.1;for=192.0.2.7', ['']],
  ['for=192.0.2.1:80', ['']],
  ['192.0.2.7', ['']],
  ['proto=https', ['']],
  ['', ['']],
  ['for=', ['']],
])('Forwarded: %s', (value, hops) => {
  expect(hopsIn('forwarded', value)).toEqual(hops)
})

test('a header with too many addresses has none', () => {
  for (const header of ['forwarded', 'x-forwarded-for'] as const) {
    expect(hopsIn(header, Array(32).fill('for=a').join())?.length).toBe(32)
    expect(hopsIn(header, Array(33).fill('for=a').join())).toBeUndefined()
  }
})
