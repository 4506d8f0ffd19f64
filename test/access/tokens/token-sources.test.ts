import { describe, expect, test } from 'vitest'
import type { Principal } from '../../../src/access/principal.ts'
import {
  createCookieReader,
  type Pages,
  refuseCrossOrigin,
  withoutCookies,
} from '../../../src/access/tokens/token-cookie.ts'
import { acceptedFrom, createTokenSources } from '../../../src/access/tokens/token-sources.ts'
import { Denied } from '../../../src/errors.ts'

const refusalOf = (act: () => unknown): string => {
  try {
    act()
    return 'none'
  } catch (error) {
    if (!(error instanceof Denied) || !('check' in error.denial)) throw error
    return `${error.denial.code}:${error.denial.check}`
  }
}

describe('createCookieReader', () => {
  const reader = (name: string) => (header?: string) =>
    createCookieReader(name)(new Map(header === undefined ? [] : [['cookie', header]]))
  const read = reader('t')

  test.each([
    ['t=a.b.c', 'a.b.c'],
    ['x=1; t=a.b.c; y=2', 'a.b.c'],
    ['x=1;t=a.b.c', 'a.b.c'],
    ['x=1;\tt=', ''],
    ['t="a.b.c"', '"a.b.c"'],
    ['t= a.b.c ; y=2', ' a.b.c '],
    ['t=a=b', 'a=b'],
    ['T=a; xt=b; t.=c; t; x=t=d; "t=e', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('reads %j as %j', (header, value) => {
    expect(read(header)).toBe(value)
  })

  test.each(['t=a; t=b', 't=a;t=a', 't=a; x=1, t=b', 'x=1,t=a', 't=a, x=1', 't =a', 't=a; t\t=b'])(
    'refuses %j as ambiguous',
    (header) => {
      expect(refusalOf(() => read(header))).toBe('ambiguous_credentials:cookie')
    },
  )

  test('compares names with any character of a cookie name literally', () => {
    const name = "!#$%&'*+-.^_`|~1"
    expect(reader(name)(`x=1; ${name}=a`)).toBe('a')
    expect(reader('a.b')('aXb=1')).toBeUndefined()
  })

  test('reads a header of 128 KB in linear time', () => {
    // Quadratic time would be far longer than the timeout of a test.
    for (const header of [
      `t=${' '.repeat(131_072)}x`,
      `t${'\t'.repeat(131_072)}x`,
      '; '.repeat(65_536),
    ])
      for (let run = 0; run < 50; run += 1) reader('t')(header)
  })
})

describe('withoutCookies', () => {
  test.each([
    ['t=1; a=2', 'a=2'],
    ['a=2; t=1', 'a=2'],
    ['a=2;t=1;  b="x;y"', 'a=2;  b="x;y"'],
    ['u=1; t=2', undefined],
    ['a=1, t=2; b=3,4; c=5,u =6', 'b=3,4'],
    ['t', undefined],
    ['T=1; tt=2; a=t=3', 'T=1; tt=2; a=t=3'],
    [';; a=1', ';; a=1'],
  ])('removes t and u from %j', (header, rest) => {
    expect(withoutCookies(header, ['t', 'u'])).toBe(rest)
  })

  test('changes nothing without names', () => {
    expect(withoutCookies(' t=1;', [])).toBe(' t=1;')
  })
})

describe('refuseCrossOrigin', () => {
  const check = (
    method: string,
    headers: Record<string, string>,
    { ownOrigin, acceptsOtherClients = false }: Partial<Pages> = {},
  ) =>
    refusalOf(() =>
      refuseCrossOrigin(
        new Map(Object.entries(headers)),
        { method, url: 'https://app.test:8443/path' },
        { ownOrigin, others: ['https://other.test'], acceptsOtherClients },
      ),
    )

  test('checks every method except the safe ones', () => {
    for (const method of ['GET', 'HEAD', 'OPTIONS']) expect(check(method, {})).toBe('none')
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'QUERY', 'get'])
      expect(check(method, {})).toBe('cross_origin_request:origin')
  })

  test('checks every upgrade', () => {
    for (const upgrade of ['websocket', 'WebSocket', 'h2c'])
      expect(check('GET', { upgrade })).toBe('cross_origin_request:origin')
    expect(check('GET', { upgrade: 'websocket', 'sec-fetch-site': 'same-origin' })).toBe('none')
  })

  test('compares Origin with the own origin, or else with that of the request', () => {
    const origin = 'https://app.test:8443'
    const gateway = { ownOrigin: 'https://gateway.test' }
    expect(check('POST', { origin })).toBe('none')
    expect(check('POST', { origin: 'https://app.test' })).toBe('cross_origin_request:origin')
    expect(check('POST', { origin }, gateway)).toBe('cross_origin_request:origin')
    expect(check('POST', { origin: gateway.ownOrigin }, gateway)).toBe('none')
  })

  test('accepts a client without both headers only where other clients than browsers are', () => {
    const anyClient = { acceptsOtherClients: true }
    expect(check('POST', {}, anyClient)).toBe('none')
    for (const header of ['origin', 'sec-fetch-site'])
      for (const value of ['', 'null', 'https://evil.test', 'none', 'cross-site'])
        expect(check('POST', { [header]: value }, anyClient)).toMatch(/^cross_origin_request:/)
  })

  test('accepts pages of a listed origin wherever they are', () => {
    const origin = 'https://other.test'
    expect(check('POST', { origin, 'sec-fetch-site': 'cross-site' })).toBe('none')
    expect(check('POST', { origin: `${origin}:443`, 'sec-fetch-site': 'cross-site' })).toBe(
      'cross_origin_request:sec_fetch_site',
    )
  })
})

describe('createTokenSources', () => {
  const own = { publicUrl: 'https://gateway.test' }
  const request = { method: 'POST', url: 'https://gateway.test/' }

  test('returns undefined if every token is in Authorization, in any spelling', () => {
    expect(createTokenSources({ issuers: [{ issuer: 'a' }], own })).toBeUndefined()
    const tokenSources = [{ header: 'AUTHORIZATION' }]
    expect(createTokenSources({ issuers: [{ issuer: 'a', tokenSources }], own })).toBeUndefined()
  })

  test('does not read Authorization if no issuer names it', () => {
    const tokenSources = [{ header: 'X-Token' }]
    const sources = createTokenSources({ issuers: [{ issuer: 'a', tokenSources }] })
    const authorization = 'Bearer a.b.c'
    expect(sources?.isAuthorizationRead).toBe(false)
    expect(sources?.read(new Map([['authorization', authorization]]), request)).toBeUndefined()
    const both = new Map([
      ['authorization', authorization],
      ['x-token', 'd.e.f'],
    ])
    expect(sources?.read(both, request)?.authorization).toBe('Bearer d.e.f')
  })

  test('joins the issuers of a header that is spelled differently, and of a cookie', () => {
    const sources = createTokenSources({
      issuers: [
        { issuer: 'a', tokenSources: [{ header: 'X-Token' }, { cookie: 't' }] },
        { issuer: 'b', tokenSources: [{ header: 'x-token' }, { cookie: 'T' }] },
      ],
      own,
    })
    expect(sources?.headers).toEqual(['x-token'])
    expect(sources?.cookies).toEqual(['t', 'T'])
    expect(sources?.vary).toEqual(['Authorization', 'X-Token', 'Cookie'])
    const issuersOf = (name: string, value: string) => [
      ...(sources?.read(new Map([[name, value]]), { ...request, method: 'GET' })?.source.issuers ??
        []),
    ]
    expect(issuersOf('x-token', 'x')).toEqual(['a', 'b'])
    expect(issuersOf('cookie', 't=x')).toEqual(['a'])
    expect(issuersOf('cookie', 'T=x')).toEqual(['b'])
    expect(issuersOf('authorization', 'x')).toEqual([])
  })

  test('accepts pages of another origin only if each issuer of the cookie lists it', () => {
    const cookie = (...origins: string[]) => [{ cookie: 't', origins }]
    const sources = createTokenSources({
      issuers: [
        { issuer: 'a', tokenSources: cookie('https://one.test', 'https://two.test') },
        { issuer: 'b', tokenSources: cookie('https://two.test', 'https://three.test') },
      ],
    })
    const from = (origin: string) =>
      refusalOf(() =>
        sources?.read(
          new Map([
            ['cookie', 't=x'],
            ['origin', origin],
          ]),
          request,
        ),
      )
    expect(from('https://two.test')).toBe('none')
    for (const origin of ['https://one.test', 'https://three.test'])
      expect(from(origin)).toBe('cross_origin_request:origin')
  })

  test('checks pages for a header from a cookie if one issuer says so, also in Authorization', () => {
    for (const header of ['X-Token', 'Authorization']) {
      const sources = createTokenSources({
        issuers: [
          { issuer: 'a', tokenSources: [{ header, origins: undefined }] },
          { issuer: 'b', tokenSources: [{ header, fromCookie: 't', origins: ['https://b.test'] }] },
        ],
      })
      expect(sources?.cookies).toEqual(['t'])
      const from = (origin: string) =>
        refusalOf(() =>
          sources?.read(
            new Map([
              [header.toLowerCase(), 'x'],
              ['origin', origin],
            ]),
            request,
          ),
        )
      expect(from('https://gateway.test')).toBe('none')
      expect(from('https://b.test')).toBe('cross_origin_request:origin')
    }
  })

  test('reads JWTs of the gateway where its references are, unless its entry names sources', () => {
    const sources = [{ header: 'X-Own' }]
    const ofOwn = (issuers: Parameters<typeof createTokenSources>[0]['issuers']) =>
      createTokenSources({ issuers, own: { ...own, sources } })?.read(
        new Map([['x-own', 'x']]),
        request,
      )?.source
    const issuer = own.publicUrl
    expect(ofOwn([{ issuer }])?.issuers.has(issuer)).toBe(true)
    const elsewhere = ofOwn([{ issuer, tokenSources: [{ header: 'X-Other' }] }])
    expect(elsewhere?.issuers.has(issuer)).toBe(false)
    expect(elsewhere?.acceptsReferences).toBe(true)
  })

  test('reports two credentials before a forged cookie', () => {
    const issuers = [{ issuer: 'a', tokenSources: [{ cookie: 't' }] }]
    const sources = createTokenSources({ issuers, own })
    const headers = new Map([
      ['cookie', 't=x'],
      ['authorization', 'Bearer y'],
      ['sec-fetch-site', 'cross-site'],
    ])
    expect(refusalOf(() => sources?.read(headers, request))).toBe('ambiguous_credentials:sources')
  })
})

describe('acceptedFrom', () => {
  const principal = { tokenIssuer: 'a' } as Principal
  const parts = {
    verifier: { recall: () => principal, verify: async () => principal },
    references: undefined,
  }
  const from = (issuer: string) =>
    acceptedFrom(
      { isInAuthorization: false, issuers: new Set([issuer]), acceptsReferences: false },
      parts,
    ).verifier

  test('accepts cached and new tokens of a listed issuer only', async () => {
    expect(from('a').recall('x')).toBe(principal)
    expect(await from('a').verify('x')).toBe(principal)
    expect(refusalOf(() => from('b').recall('x'))).toBe('token_rejected:source')
    await expect(from('b').verify('x')).rejects.toMatchObject({ denial: { check: 'source' } })
  })
})
