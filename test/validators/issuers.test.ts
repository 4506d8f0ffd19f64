import { describe, expect, it } from 'vitest'
import { es256, mistakes, remote, rs256, secret, withIssuers } from './environment.ts'

describe('ISSUERS', () => {
  it('key sets are fetched over https or from this machine [S05]', () => {
    const of = (jwksUri: string) => mistakes(withIssuers({ ...remote, jwksUri })).length
    for (const uri of [
      'https://idp.test/k',
      'http://localhost:1/k',
      'http://idp.localhost/k',
      'http://127.0.0.1:1/k',
      'http://[::1]/k',
    ])
      expect(of(uri), uri).toBe(0)
    for (const uri of [
      'http://idp.test/k',
      'http://10.0.0.1/k',
      'http://127.0.0.1.evil.test/k',
      'http://localhost.evil.test/k',
      'http://xlocalhost/k',
      'file:///k',
      'data:,x',
      '/k',
      'https://u:p@idp.test/k',
    ])
      expect(of(uri), uri).toBe(1)
  })

  it('an issuer is listed once, with at most one source of keys [S12]', () => {
    expect(mistakes(withIssuers(remote, remote))).toEqual(['ISSUERS[1].issuer: duplicate issuer'])
    expect(mistakes(withIssuers({ ...remote, jwks: { keys: [es256.publicJwk] } }))).toEqual([
      'ISSUERS[0]: has both jwksUri and jwks; remove one',
    ])
  })

  it('an issuer without keys must be a URL with metadata [S05]', () => {
    const of = (issuer: string) => mistakes(withIssuers({ issuer, audience: 'api' }))
    for (const issuer of ['https://idp.test', 'https://idp.test/a/', 'http://127.0.0.1:1'])
      expect(of(issuer), issuer).toEqual([])
    for (const issuer of [
      'accounts.google.com',
      'http://idp.test',
      'https://idp.test?a',
      'https://idp.test/#a',
      'https://user@idp.test',
      'urn:idp',
    ]) {
      expect(of(issuer), issuer).toEqual([
        'ISSUERS[0].issuer: must be an https URL without query and fragment, so that its metadata can be found; or set jwksUri',
      ])
    }
  })

  it('an issuer without a key set verifies its opaque tokens by a call', () => {
    const of = (entry: object) =>
      mistakes(
        withIssuers({ issuer: 'https://idp.test', audience: 'api', keySet: 'none', ...entry }),
      )
    const userinfo = { audience: 'any' }
    expect(of({ userinfo })).toEqual([])
    const endpoint = 'https://idp.test/me'
    expect(of({ issuer: 'urn:idp', userinfo: { ...userinfo, endpoint } })).toEqual([])
    expect(of({ issuer: 'urn:idp', userinfo })).toEqual([
      'ISSUERS[0].issuer: must be an https URL without query and fragment, so that its metadata can be found; or set endpoint',
    ])
    const needed =
      'ISSUERS[0].keySet: "none" requires introspection or userinfo with the form "opaque", and neither jwksUri nor jwks'
    expect(of({})).toEqual([needed])
    expect(of({ userinfo: { ...userinfo, form: 'jwt' } })).toEqual([needed])
    for (const keys of [{ jwksUri: 'https://idp.test/k' }, { jwks: { keys: [es256.publicJwk] } }])
      expect(of({ userinfo, ...keys })).toEqual([needed])
    expect(of({ userinfo, keySet: 'None' })).toEqual(['ISSUERS[0].keySet: must be "none"'])
    // The key set of a preset is not a contradiction, because the entry replaces it.
    const preset = { preset: 'google', require: { hd: 'a.test' }, userinfo }
    expect(of({ ...preset, issuer: undefined })).toEqual([])
  })

  it('a preset of the sign-in is named as such, and any other lists the known ones', () => {
    const [github, ...others] = mistakes(withIssuers({ preset: 'github', audience: 'api' }))
    expect(others).toEqual([])
    expect(github).toMatch(
      /^ISSUERS\[0\]\.preset: must be one of .*github-actions.*; "github" is a preset for signIn of ISSUER_CLIENTS; here, set issuer$/,
    )
    expect(mistakes(withIssuers({ preset: 'gitlab', audience: 'api' }))).toEqual([
      expect.not.stringContaining('signIn'),
    ])
  })

  it('the gateway does not look for its own metadata', () => {
    const own = { issuer: 'https://gateway.test', audience: 'api' }
    expect(mistakes(withIssuers(own))).toEqual(['ISSUERS[0]: is this gateway; requires jwks'])
    expect(mistakes(withIssuers({ ...own, jwks: { keys: [es256.publicJwk] } }))).toEqual([])
  })

  it('a clock tolerance above 300 s is refused [S16]', () => {
    expect(mistakes(withIssuers({ ...remote, clockTolerance: 300 }))).toEqual([])
    for (const clockTolerance of [301, -1, '5', null])
      expect(mistakes(withIssuers({ ...remote, clockTolerance }))).toHaveLength(1)
  })

  it('none and unknown algorithms cannot be configured [S01]', () => {
    for (const algorithm of ['none', 'HS384', 'HS512', 'ES256K', 'RSA1_5', ''])
      expect(mistakes(withIssuers({ ...remote, algorithms: [algorithm] }))).toHaveLength(1)
    expect(mistakes(withIssuers({ ...remote, algorithms: [] }))).toHaveLength(1)
  })

  it('HS256 needs a long secret with that algorithm, and a secret needs HS256 [S02, S47]', () => {
    const of = (algorithms: string[], ...keys: object[]) =>
      mistakes(withIssuers({ ...remote, jwksUri: undefined, algorithms, jwks: { keys } }))
    const oct = (text: string) => ({ kty: 'oct', k: Buffer.from(text).toString('base64url') })
    expect(of(['HS256'], { kty: 'oct', k: secret() })).toEqual([])
    expect(mistakes(withIssuers({ ...remote, algorithms: ['HS256', 'RS256'] }))).toEqual([
      'ISSUERS[0].algorithms: HS256 requires a secret in jwks',
    ])
    expect(of(['RS256'], { kty: 'oct', k: secret() })).toEqual([
      'ISSUERS[0].jwks.keys[0]: is not usable (alg)',
    ])
    expect(of(['HS256', 'RS256'], rs256.publicJwk)).toEqual([
      'ISSUERS[0].algorithms: HS256 requires a secret of at least 32 bytes in jwks',
    ])
    expect(of(['HS256'], { kty: 'oct', k: secret().slice(0, 40) })).toHaveLength(2)
    for (const text of [
      'a-string-secret-at-least-256-bits-long',
      'your-256-bit-secret-your-256-bit-secret',
      'a'.repeat(64),
      '0'.repeat(32),
      'abcd'.repeat(16),
      'changemechangemechangemechangeme',
      'password'.repeat(5),
    ]) {
      expect(of(['HS256'], oct(text)), text).toEqual([
        'ISSUERS[0].jwks.keys: contains a guessable secret; use random bytes',
      ])
    }
    expect(
      of(['HS256'], {
        kty: 'oct',
        k: 'AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow',
      }),
    ).toHaveLength(1)
    for (let n = 0; n < 2_000; n++) expect(of(['HS256'], { kty: 'oct', k: secret(n) })).toEqual([])
  })

  it('every inline key must be usable [S08]', () => {
    const inline = (...keys: object[]) =>
      mistakes(withIssuers({ ...remote, jwksUri: undefined, jwks: { keys } }))
    expect(inline(es256.publicJwk, rs256.publicJwk)).toEqual([])
    expect(inline(es256.publicJwk, { ...rs256.publicJwk, use: 'enc' })).toEqual([
      'ISSUERS[0].jwks.keys[1]: is not usable (use)',
    ])
    expect(inline(es256.privateJwk)).toEqual(['ISSUERS[0].jwks.keys[0]: is not usable (d)'])
    expect(inline()).toHaveLength(1)
  })
})

describe('tokenSources', () => {
  const of = (...tokenSources: unknown[]) => mistakes(withIssuers({ ...remote, tokenSources }))

  it('accepts headers, and cookies with origins', () => {
    expect(of({ header: 'Authorization' })).toEqual([])
    expect(of({ header: 'X-API-Key' }, { header: 'Cf-Access-Jwt-Assertion' })).toEqual([])
    expect(of({ cookie: '__Host-token' })).toEqual([])
    const origins = ['https://app.test']
    expect(of({ header: 'X-Jwt', fromCookie: 'session', origins })).toEqual([])
    expect(of({ cookie: 'CF_Authorization', origins: ['https://app.test'] })).toEqual([])
  })

  it('refuses a query parameter, and says why', () => {
    const message =
      'ISSUERS[0].tokenSources[0]: must be { "header": NAME } or { "cookie": NAME }; ' +
      'a query parameter is not possible: URLs are logged'
    const others = [{ query: 'access_token' }, { header: 'X-A', query: 'a' }, 'query', {}, null]
    for (const source of [...others, { header: 'X-A', cookie: 'a' }])
      expect(of(source)).toEqual([message])
    expect(of({ header: 'X-A', origins: [] })).toEqual([
      'ISSUERS[0].tokenSources[0]: origins requires fromCookie: browsers send other headers only ' +
        'for pages of the same origin',
    ])
  })

  it('refuses names that are not possible or have another meaning', () => {
    const inHeader = (header: string) => of({ header })
    for (const name of ['', 'X_Api_Key', 'X-Api-Key:', 'X-Schlüssel', 'x'.repeat(257)])
      expect(inHeader(name).length).toBeGreaterThan(0)
    const taken = ['Cookie', 'set-cookie', 'DPoP', 'Host', 'Origin', 'X-Request-Id', 'traceparent']
    for (const name of [...taken, 'Proxy-Authorization', 'Sec-WebSocket-Key', 'CF-Connecting-IP'])
      expect(inHeader(name)).toEqual([
        'ISSUERS[0].tokenSources[0].header: is a header with another meaning',
      ])
    for (const cookie of ['', 'a b', 'a;b', 'a=b', 'a,b', 'é'])
      expect(of({ cookie })).toHaveLength(1)
  })

  it('refuses origins that no browser sends', () => {
    for (const origin of [
      'https://app.test/',
      'https://*.app.test',
      'null',
      '*',
      'https://app.test:443',
    ])
      expect(of({ cookie: 'a', origins: [origin] })).not.toEqual([])
  })

  it('refuses no sources, and too many', () => {
    expect(of()).toHaveLength(1)
    expect(of(...Array(9).fill({ header: 'X-A' }))).toHaveLength(1)
  })
})
