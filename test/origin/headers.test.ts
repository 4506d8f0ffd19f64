import { describe, expect, test } from 'vitest'
import type { Principal } from '../../src/access/principal.ts'
import { headerWord } from '../../src/http/header-word.ts'
import { fieldsOf, makePrivate, varyBy } from '../../src/http/shared-caches.ts'
import { setIdentity } from '../../src/origin/identity-headers.ts'
import { sanitizeResponse } from '../../src/routes/origin-response.ts'
import { Fields } from '../../src/runtimes/node/fields.ts'

const ALICE: Principal = {
  issuer: 'https://issuer.test/',
  tokenIssuer: 'https://issuer.test/',
  subject: 'alice',
  client: undefined,
  tenant: undefined,
  session: undefined,
  roles: [],
  scopes: [],
  tokenId: undefined,
  tokenIdHash: undefined,
  confirmation: undefined,
  issuedAtSeconds: 0,
  expiresAtSeconds: 0,
}

describe('identity headers', () => {
  test.each(['alice', 'auth0|5f7', 'a@b.test', 'https://issuer.test/?a=b&c=(d)', '!"#$&\'()*+,'])(
    '%j is forwarded unchanged [S54]',
    (value) => {
      expect(headerWord(value)).toBe(value)
    },
  )

  test.each([
    'a b',
    ' a',
    '100%',
    '%41',
    'é',
    '日本語',
    'a\r\nX-Auth-Roles: admin',
    '\u0000',
    '\u007f',
  ])('%j becomes one visible word that decodes to itself [S17]', (value) => {
    const word = headerWord(value)
    expect(word).toMatch(/^[!-~]+$/)
    expect(decodeURIComponent(word)).toBe(value)
  })

  test('a lone surrogate does not throw [S17]', () => {
    expect(headerWord('a\ud800')).toBe('a%EF%BF%BD')
  })

  test('contain each claim of the token once, and nothing else', () => {
    const headers = new Headers()
    setIdentity(headers, ALICE)
    expect([...headers.keys()]).toEqual(['x-auth-issuer', 'x-auth-subject'])
    setIdentity(headers, { ...ALICE, client: 'c', tenant: 't', roles: ['r'], scopes: ['s'] })
    expect([...headers]).toEqual([
      ['x-auth-client', 'c'],
      ['x-auth-issuer', 'https://issuer.test/'],
      ['x-auth-roles', 'r'],
      ['x-auth-scope', 's'],
      ['x-auth-subject', 'alice'],
      ['x-auth-tenant', 't'],
    ])
  })

  test('a role that contains a comma cannot be read as two roles [S54]', () => {
    const headers = new Headers()
    const roles = ['reader,admin', 'a b', 'é,', 'plain']
    setIdentity(headers, { ...ALICE, roles, scopes: ['orders:read', 'a b'] })
    const decoded = headers.get('X-Auth-Roles')?.split(',').map(decodeURIComponent)
    expect(decoded).toEqual(roles)
    expect(headers.get('X-Auth-Scope')?.split(' ').map(decodeURIComponent)).toEqual([
      'orders:read',
      'a b',
    ])
  })
})

const onNode = (init: Readonly<Record<string, string>>): Headers => {
  const fields = new Fields()
  for (const [name, value] of Object.entries(init)) fields.append(name, value)
  return fields as unknown as Headers
}

describe.each([
  ['of the platform', (init: Readonly<Record<string, string>>) => new Headers(init)],
  ['as plain data on Node', onNode],
])('response headers %s', (_, headersOf) => {
  test('headers about the infrastructure and headers that the gateway sets are dropped [S60]', () => {
    const headers = headersOf({
      Server: 'nginx',
      Via: '1.1 a',
      'X-Powered-By': 'PHP',
      'X-Debug-Token': 'a',
      'X-Request-Id': 'theirs',
      RateLimit: '"a";r=1;t=1',
      'RateLimit-Policy': '"a";q=1;w=1',
      'X-RateLimit-Remaining': '1',
      'X-Auth-Assertion': 'ey',
      'X-Accel-Redirect': '/secret',
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Allow-Credentials': 'true',
      Connection: 'close, X-Hop',
      'Keep-Alive': 'timeout=5',
      'Proxy-Authenticate': 'Basic',
      'X-Hop': '1',
      ETag: '"a"',
      'Retry-After': '5',
      'X-Custom': 'kept',
    })
    sanitizeResponse(fieldsOf(headers), 200)
    expect([...headers.keys()].sort()).toEqual([
      'etag',
      'retry-after',
      'x-content-type-options',
      'x-custom',
    ])
  })

  test('a header that `Connection` removes counts as absent [S61]', () => {
    const headers = headersOf({ Connection: 'vary', Vary: 'Authorization' })
    const fields = fieldsOf(headers)
    sanitizeResponse(fields, 200)
    varyBy(fields, ['Authorization'])
    expect(headers.get('Vary')).toBe('Authorization')
  })

  test('Set-Cookie fields stay separate [S60]', () => {
    const headers = headersOf({})
    const cookies = ['a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT', 'b=2', 'c=3']
    for (const cookie of cookies) headers.append('Set-Cookie', cookie)
    sanitizeResponse(fieldsOf(headers), 200)
    expect(headers.getSetCookie()).toEqual(cookies)
  })

  test('`Connection` can remove Set-Cookie fields [S60]', () => {
    const headers = headersOf({ Connection: 'close, Set-Cookie', 'Set-Cookie': 'a=1' })
    sanitizeResponse(fieldsOf(headers), 200)
    expect(headers.getSetCookie()).toEqual([])
  })

  test.each([
    [undefined, 'private'],
    ['public', 'private'],
    ['public, max-age=60', 'private, max-age=60'],
    ['PUBLIC, S-MaxAge=60, max-age=5', 'private, max-age=5'],
    ['max-age=5, s-maxage="60", must-revalidate', 'private, max-age=5, must-revalidate'],
    ['private', 'private'],
    ['private="Set-Cookie, X-A", max-age=1', 'private, max-age=1'],
    ['no-cache="Set-Cookie, public"', 'private, no-cache="Set-Cookie, public"'],
    ['no-cache', 'private, no-cache'],
    ['no-store', 'no-store'],
    ['No-Store, public', 'No-Store, public'],
    ['"unterminated, public', 'private, "unterminated, public'],
  ])('Cache-Control %j becomes %j [S61]', (before, after) => {
    const headers = headersOf(before === undefined ? {} : { 'Cache-Control': before })
    makePrivate(fieldsOf(headers))
    expect(headers.get('Cache-Control')).toBe(after)
  })

  test('headers that only intermediaries read are dropped [S61]', () => {
    const headers = headersOf({
      'CDN-Cache-Control': 'max-age=60',
      'Cloudflare-CDN-Cache-Control': 'max-age=60',
      'Surrogate-Control': 'max-age=60',
    })
    makePrivate(fieldsOf(headers))
    expect([...headers.keys()]).toEqual(['cache-control'])
  })

  test.each([
    [undefined, 'Authorization'],
    ['Accept-Encoding', 'Accept-Encoding, Authorization'],
    ['accept, AUTHORIZATION', 'accept, AUTHORIZATION'],
    ['X-Authorization', 'X-Authorization, Authorization'],
    ['*', '*'],
    ['Accept,*', 'Accept,*'],
  ])('Vary %j becomes %j [S61]', (before, after) => {
    const headers = headersOf(before === undefined ? {} : { Vary: before })
    varyBy(fieldsOf(headers), ['Authorization'])
    expect(headers.get('Vary')).toBe(after)
  })
})
