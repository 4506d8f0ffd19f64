import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../src/features/environment.ts'
import { good, mistakes } from './environment.ts'

const [store, other, model] = ['A', 'B', 'C'].map((letter) => letter.repeat(26)) as [
  string,
  string,
  string,
]
const openfga = (stores: unknown) => ({
  ...good,
  OPENFGA_URL: 'https://fga.test/base/',
  OPENFGA_STORES: JSON.stringify(stores),
})
const authzen = (urls: unknown) => ({ ...good, AUTHZEN_URLS: JSON.stringify(urls) })

describe('policy decision points', () => {
  test('OpenFGA has one URL and a store for each tenant', () => {
    const env = openfga({ '': store, acme: { store: other, model } })
    expect(parseConfig(env).decisionPoints).toEqual({
      timeoutMs: 250,
      authzen: undefined,
      openfga: {
        url: 'https://fga.test/base',
        token: undefined,
        stores: new Map([
          ['', { store }],
          ['acme', { store: other, model }],
        ]),
      },
    })
    const more = { OPENFGA_TOKEN: 'hush', AUTHORITY_TIMEOUT_MS: '1000' }
    expect(parseConfig({ ...env, ...more }).decisionPoints).toMatchObject({
      timeoutMs: 1_000,
      openfga: { token: 'hush' },
    })
  })

  test('AuthZEN has a server for each tenant, and refuses a context unless configured otherwise', () => {
    const env = authzen({ '*': 'http://127.0.0.1:9000/', acme: 'https://pdp.test/acme' })
    const urls = new Map([
      ['*', 'http://127.0.0.1:9000'],
      ['acme', 'https://pdp.test/acme'],
    ])
    expect(parseConfig(env).decisionPoints.authzen).toEqual({
      urls,
      token: undefined,
      context: 'refuse',
    })
    const more = { AUTHZEN_TOKEN: 'hush', AUTHZEN_CONTEXT: 'ignore' }
    expect(parseConfig({ ...env, ...more }).decisionPoints.authzen).toEqual({
      urls,
      token: 'hush',
      context: 'ignore',
    })
  })

  test('one error names every mistake and no secret [R31]', () => {
    const env = {
      ...good,
      OPENFGA_URL: 'http://fga.test',
      OPENFGA_TOKEN: 'hush hush',
      AUTHZEN_TOKEN: 'hush\n',
      AUTHZEN_CONTEXT: 'maybe',
      AUTHORITY_TIMEOUT_MS: '5',
    }
    expect(mistakes(env).toSorted()).toEqual([
      'AUTHORITY_TIMEOUT_MS: must be from 10 to 5000',
      'AUTHZEN_CONTEXT: must be refuse or ignore',
      'AUTHZEN_TOKEN: must be ASCII without spaces and control characters',
      'AUTHZEN_URLS: is missing; AUTHZEN_TOKEN requires it',
      'OPENFGA_STORES: is missing; OPENFGA_URL requires it',
      'OPENFGA_TOKEN: must be ASCII without spaces and control characters',
      'OPENFGA_URL: must be https, unless it is on a loopback address',
    ])
    const { OPENFGA_URL: _, ...lost } = { ...openfga({ '': store }), OPENFGA_TOKEN: 'hush' }
    expect(new Set(mistakes(lost))).toEqual(
      new Set([
        'OPENFGA_URL: is missing; OPENFGA_STORES requires it',
        'OPENFGA_URL: is missing; OPENFGA_TOKEN requires it',
      ]),
    )
  })

  test.each([
    ['{', 'OPENFGA_STORES: must be valid JSON'],
    ['[]', 'OPENFGA_STORES: must be an object with one member per tenant'],
    ['"x"', 'OPENFGA_STORES: must be an object with one member per tenant'],
    ['{}', 'OPENFGA_STORES: must have at least one entry'],
    ['{"a":"../x"}', 'OPENFGA_STORES.a: must be the id of a store'],
    [`{"a":{"store":"${store}","models":[]}}`, 'OPENFGA_STORES.a: Unrecognized key'],
    [`{"a":"${store}","a":"${other}"}`, 'OPENFGA_STORES: has a duplicate member name'],
    // Two tenants must not share their tuples.
    [`{"a":"${store}","b":"${store}"}`, 'OPENFGA_STORES.b: duplicates the store of another tenant'],
  ])('stores as %j are refused [R31]', (OPENFGA_STORES, mistake) => {
    const found = mistakes({ ...openfga({}), OPENFGA_STORES })
    expect(found).toHaveLength(1)
    expect(found[0]).toContain(mistake)
  })

  test.each([
    'ftp://pdp.test',
    'http://pdp.test',
    'https://me:hush@pdp.test',
    'https://pdp.test/?tenant=a',
    'https://pdp.test/#a',
    'pdp.test',
    '',
  ])('a server at %j is refused [R31]', (url) => {
    const [mistake, ...others] = mistakes(authzen({ '': url }))
    expect(mistake).toMatch(/^AUTHZEN_URLS/)
    expect(mistake).not.toContain('hush')
    expect(others).toEqual([])
  })

  describe.each(['AUTHORITY_TIMEOUT_MS', 'REDIS_TIMEOUT_MS'])('%s', (name) => {
    test.each(['', '0', '9', '5001', '1e3', '250ms', '-250', ' 250'])(
      'a deadline of %j is refused [R31]',
      (text) => {
        const [mistake, ...others] = mistakes({ ...good, [name]: text })
        expect(mistake).toMatch(new RegExp(`^${name}: must be`))
        expect(others).toEqual([])
      },
    )
  })
})
