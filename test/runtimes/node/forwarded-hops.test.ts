import { expect, test } from 'vitest'
import {
  elementsIn,
  type ProxyHeader,
  readParameter,
} from '../../../src/runtimes/node/forwarded-hops.ts'

/** The addresses of a header, from the right. Empty: an element has none. */
function* hopsIn(header: ProxyHeader, value: string) {
  for (const element of elementsIn(header, value))
    yield header === 'forwarded' ? (readParameter(element, 'for') ?? '') : element
}

test.each([
  ['for=192.0.2.7', ['192.0.2.7']],
  ['For="[2001:db8::9]:443";proto=https', ['[2001:db8::9]:443']],
  ['by=203.0.113.1;for=192.0.2.7, for="192.0.2.8:80"', ['192.0.2.8:80', '192.0.2.7']],
  ['for="192.0.2.\\7"', ['192.0.2.7']],
  ['for=192.0.2.7;host="a, for=198.51.100.1"', ['192.0.2.7']],
  ['for=192.0.2.7;host="a, for=198.51.100.1;x=\\"\\""', ['192.0.2.7']],
  ['for=192.0.2.7;host="a, for=198.51.100.1;x=\\\\"', ['192.0.2.7']],
  ['for=192.0.2.7;host="a;for=198.51.100.1"', ['192.0.2.7']],
  ['for=_hidden, for=unknown', ['unknown', '_hidden']],
  ['for="192.0.2.1, for=192.0.2.7', ['192.0.2.7', '']],
  ['for="192.0.2.1\\, for=192.0.2.7', ['192.0.2.7', '']],
  ['for=192.0.2.1;x=", for="[2001:db8::9]"', ['[2001:db8::9]', '']],
  ['for=192.0.2.1;for=192.0.2.7', ['']],
  ['for=192.0.2.1:80', ['']],
  ['192.0.2.7', ['']],
  ['proto=https', ['']],
  ['', []],
  [', for=192.0.2.7,,', ['192.0.2.7']],
  ['for=', ['']],
])('Forwarded: %s', (value, hops) => {
  expect([...hopsIn('forwarded', value)]).toEqual(hops)
})

test.each([
  ['192.0.2.1, 192.0.2.7', ['192.0.2.7', '192.0.2.1']],
  [',192.0.2.7', ['192.0.2.7']],
  ['a, ,192.0.2.7 ,', ['192.0.2.7', 'a']],
  ['', []],
  [',', []],
])('X-Forwarded-For: "%s"', (value, hops) => {
  expect([...hopsIn('x-forwarded-for', value)]).toEqual(hops)
})

const HOSTILE = [
  '1',
  '',
  '"',
  '\\',
  '\\"',
  'for=1',
  'for="',
  '"\\',
  'a=b;',
  ';',
  '\t',
  'é',
  '=',
] as const

/** Every way in which a client can fill what is left of the element of its proxy, up to a length. */
function* texts(): Generator<string> {
  for (const one of HOSTILE) {
    for (const other of HOSTILE) {
      for (const count of [1, 2, 31, 32, 33, 2_000])
        yield Array.from({ length: count }, (_, at) => (at % 2 ? one : other)).join()
    }
  }
}

test('nothing on the left of an element changes it', () => {
  for (const text of texts()) {
    for (const element of ['for=192.0.2.7', 'for="[2001:db8::9]:1";host="a, for=198.51.100.1"']) {
      const alone = hopsIn('forwarded', element).next().value
      expect(hopsIn('forwarded', `${text}, ${element}`).next().value, text).toBe(alone)
    }
    expect(hopsIn('x-forwarded-for', `${text}, 192.0.2.7`).next().value, text).toBe('192.0.2.7')
  }
})
