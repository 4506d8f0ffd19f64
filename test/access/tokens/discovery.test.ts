/** The key set of an issuer that is found in its metadata, with a real server. */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  createDiscovery,
  MetadataRefused,
  metadataUriIn,
  metadataUrlsOf,
} from '../../../src/access/tokens/discovery.ts'
import type {
  KeySetIncident,
  RemoteKeySetOptions,
} from '../../../src/access/tokens/remote-key-set.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { type Running, startWorkerd } from '../../origin/workerd.ts'
import { keySetOn } from './provider.ts'
import { createSigner, NOW_SECONDS } from './signer.ts'

const [signer, second] = await Promise.all([createSigner('ES256', 'a'), createSigner('ES256', 'b')])
const OPENID = '/.well-known/openid-configuration'
const OAUTH = '/.well-known/oauth-authorization-server'

type Behavior = (response: ServerResponse) => unknown
const json = (value: unknown): Behavior => {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(text)
}
const status =
  (code: number, headers: Record<string, string> = {}): Behavior =>
  (response) =>
    response.writeHead(code, headers).end('no')
const hanging: Behavior = () => {}

let server: TestServer
/** The path of the issuer, without a trailing slash. */
let paths: Record<string, Behavior>
let seen: string[]
beforeEach(async () => {
  seen = []
  server = await startHttpServer((request, response) => {
    const path = request.url ?? ''
    seen.push(path)
    return (paths[path] ?? status(404))(response)
  })
  paths = {
    [OPENID]: json({ issuer: server.url, jwks_uri: `${server.url}/keys` }),
    '/keys': json({ keys: [signer.publicJwk] }),
  }
})
afterEach(() => server.close())

const discoveredOn = (issuer: string, options: Partial<RemoteKeySetOptions> = {}) =>
  keySetOn(issuer, { locator: createDiscovery(issuer), timeoutMs: 20_000, ...options })

describe('the metadata of an issuer', () => {
  it('is at the URLs of OpenID Connect Discovery and of RFC 8414', () => {
    expect(metadataUrlsOf('https://idp.test')).toEqual([
      `https://idp.test${OPENID}`,
      `https://idp.test${OAUTH}`,
    ])
    expect(metadataUrlsOf('https://idp.test/')).toEqual(metadataUrlsOf('https://idp.test'))
    for (const issuer of ['https://idp.test/realms/one', 'https://idp.test/realms/one/']) {
      expect(metadataUrlsOf(issuer)).toEqual([
        `https://idp.test/realms/one${OPENID}`,
        `https://idp.test${OAUTH}/realms/one`,
      ])
    }
  })

  it('must name exactly the expected issuer (RFC 8414 section 3.3)', () => {
    const uri = 'https://keys.test/jwks'
    const of = (named: unknown) => () =>
      metadataUriIn(JSON.stringify({ issuer: named, jwks_uri: uri }), 'https://idp.test/a')
    expect(of('https://idp.test/a')()).toBe(uri)
    for (const named of [
      'https://idp.test/a/',
      'https://IDP.test/a',
      'https://idp.test:443/a',
      'https://idp.test',
      'https://idp.test/b',
      'https://idp.test/{tenantid}',
      ['https://idp.test/a'],
      undefined,
      null,
      1,
    ])
      expect(of(named), String(named)).toThrow(MetadataRefused)
    expect(of('https://idp.test/a/')).toThrow(
      'has the issuer "https://idp.test/a/", expected "https://idp.test/a"',
    )
    expect(of('x'.repeat(100_000))).toThrow(/^.{0,300}$/)
  })

  it('names a key set that is fetched over https, from a host with a name or its own', () => {
    const of = (uri: unknown, issuer = 'https://idp.test') => {
      try {
        return metadataUriIn(JSON.stringify({ issuer, jwks_uri: uri }), issuer)
      } catch (error) {
        if (error instanceof MetadataRefused) return 'refused'
        throw error
      }
    }
    for (const uri of ['https://idp.test/k', 'https://keys.cdn.test:8443/k?v=1'])
      expect(of(uri)).toBe(uri)
    for (const uri of [
      'http://idp.test/k',
      'http://127.0.0.1/k',
      'http://localhost:9000/k',
      'https://localhost/k',
      'https://a.localhost/k',
      'https://127.0.0.1/k',
      'https://169.254.169.254/latest/meta-data',
      'https://10.0.0.1/k',
      'https://0x7f.1/k',
      'https://2130706433/k',
      'https://[::1]/k',
      'https://[fd00::1]/k',
      'https://user:secret@idp.test/k',
      'file:///etc/passwd',
      'data:application/json,{}',
      '/keys',
      '',
      null,
      undefined,
      ['https://idp.test/k'],
    ])
      expect(of(uri), String(uri)).toBe('refused')
    expect(of('https://10.0.0.1:6443/k', 'https://10.0.0.1:6443')).toBe('https://10.0.0.1:6443/k')
    expect(of('http://127.0.0.1:2/k', 'http://127.0.0.1:1')).toBe('http://127.0.0.1:2/k')
    expect(of('http://10.0.0.1/k', 'http://127.0.0.1:1')).toBe('refused')
  })
})

describe('a discovered key set', () => {
  it('is found by OpenID Connect Discovery', async () => {
    expect(await discoveredOn(server.url).find(signer)).toBe('ok')
    expect(seen).toEqual([OPENID, '/keys'])
  })

  it('is found by RFC 8414 if there is no OpenID Connect metadata', async () => {
    const issuer = `${server.url}/realms/one`
    const metadata = json({ issuer, jwks_uri: `${server.url}/keys` })
    for (const openid of [status(404), json('<!doctype html>'), json({ issuer: server.url })]) {
      seen = []
      paths = { ...paths, [`/realms/one${OPENID}`]: openid, [`${OAUTH}/realms/one`]: metadata }
      expect(await discoveredOn(issuer).find(signer)).toBe('ok')
      expect(seen).toEqual([`/realms/one${OPENID}`, `${OAUTH}/realms/one`, '/keys'])
    }
  })

  it('fifty simultaneous first requests make two calls [R08]', async () => {
    const { find } = discoveredOn(server.url)
    const found = await Promise.all(Array.from({ length: 50 }, () => find(signer)))
    expect(new Set(found)).toEqual(new Set(['ok']))
    expect(seen).toEqual([OPENID, '/keys'])
  })

  it('metadata that is wrong is an outage, not an invalid token [R10]', async () => {
    const keys = `${server.url}/keys`
    const wrong: [Behavior, string][] = [
      [json({ issuer: `${server.url}/`, jwks_uri: keys }), 'malformed'],
      [json({ issuer: server.url }), 'malformed'],
      [json({ issuer: server.url, jwks_uri: 'http://keys.test/jwks' }), 'malformed'],
      [json(`{"issuer":"${server.url}","issuer":"x","jwks_uri":"${keys}"}`), 'malformed'],
      [json('<html>'), 'malformed'],
      [json('null'), 'malformed'],
      [json('['.repeat(10_000)), 'malformed'],
      [json({ issuer: server.url, jwks_uri: keys, padding: 'x'.repeat(70_000) }), 'malformed'],
      [status(500), 'refused'],
      [status(302, { location: '/elsewhere' }), 'refused'],
      [(response) => response.destroy(), 'unreachable'],
      [hanging, 'timeout'],
    ]
    for (const [behavior, fault] of wrong) {
      paths = { ...paths, [OPENID]: behavior, '/elsewhere': paths[OPENID] ?? hanging }
      seen = []
      // A deadline that a stall of the machine exceeds is for the provider that is silent.
      const timeoutMs = fault === 'timeout' ? 100 : 20_000
      const { find } = discoveredOn(server.url, { timeoutMs })
      expect(await find(signer)).toBe(`key_set:${fault}`)
      expect(seen).not.toContain('/keys')
      expect(seen).not.toContain('/elsewhere')
    }
  })

  it('reports the mistake in the metadata once', async () => {
    paths[OPENID] = json({ issuer: `${server.url}/`, jwks_uri: `${server.url}/keys` })
    const incidents: KeySetIncident[] = []
    const { find, advance } = discoveredOn(server.url, { report: (one) => incidents.push(one) })
    for (let round = 0; round < 3; round++) {
      expect(await find(signer)).toBe('key_set:malformed')
      advance(60)
    }
    const detail = `has the issuer "${server.url}/", expected "${server.url}"`
    expect(incidents).toEqual([
      { kind: 'refresh_failed', uri: server.url, fault: 'malformed', detail },
    ])
  })

  it('tokens are accepted for a day while the provider is down [R09]', async () => {
    const { find, advance, settled } = discoveredOn(server.url)
    expect(await find(signer)).toBe('ok')
    paths = {}
    for (let hours = 0; hours < 23; hours++) {
      advance(3_600)
      expect(await find(signer)).toBe('ok')
      await settled()
    }
    expect(await find(second)).toBe('key_set:refused')
    advance(3_600)
    expect(await find(signer)).toBe('key_set:refused')
  })

  it.each([
    ['absent', status(404)],
    ['wrong', json({ issuer: 'https://evil.test', jwks_uri: 'https://evil.test/keys' })],
    ['silent', hanging],
  ])('is refreshed from its last location while the metadata is %s [R09]', async (_, behavior) => {
    const { find, advance, settled } = discoveredOn(
      server.url,
      behavior === hanging ? { timeoutMs: 1_000 } : {},
    )
    expect(await find(signer)).toBe('ok')
    paths = { [OPENID]: behavior, '/keys': json({ keys: [second.publicJwk] }) }
    advance(300)
    expect(await find(second)).toBe('ok')
    await settled()
    expect(await find(signer)).toBe('token_rejected:kid_unknown')
  })

  it('moves with its metadata, at the next refresh [R11]', async () => {
    const { find, advance } = discoveredOn(server.url)
    expect(await find(signer)).toBe('ok')
    paths[OPENID] = json({ issuer: server.url, jwks_uri: `${server.url}/moved` })
    paths['/moved'] = json({ keys: [second.publicJwk] })
    advance(300)
    expect(await find(signer)).toBe('token_rejected:kid_unknown')
    expect(await find(second)).toBe('ok')
  })

  it('unknown keys cause one download per cool-down, and metadata once a minute [R07]', async () => {
    const { find, advance } = discoveredOn(server.url)
    expect(await find(signer)).toBe('ok')
    seen = []
    for (let round = 0; round < 4; round++) {
      advance(30)
      for (let n = 0; n < 5; n++) expect(await find(second)).toBe('token_rejected:kid_unknown')
    }
    expect(seen).toEqual(['/keys', OPENID, '/keys', '/keys', OPENID, '/keys'])
  })
})

describe('a discovered key set in workerd', () => {
  let worker: Running
  beforeAll(async () => {
    const entry = join(import.meta.dirname, 'workers/verifier.ts')
    worker = await startWorkerd({ entry, vars: {} })
  })
  afterAll(() => worker.stop())

  async function verify(issuer: string, token: string, secondsLater = 0): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${worker.port}/`, {
      headers: {
        authorization: `Bearer ${token}`,
        'x-issuer': issuer,
        'x-seconds-later': `${secondsLater}`,
      },
    })
    return `${response.status} ${await response.text()}`
  }

  it('fifty simultaneous first requests make at most two calls [R08]', async () => {
    const issuer = server.url
    const good = paths
    paths = Object.fromEntries(
      Object.entries(good).map(([path, behavior]) => [
        path,
        (response) => setTimeout(() => behavior(response), 50),
      ]),
    )
    const tokens = await Promise.all(
      Array.from({ length: 50 }, (_, n) => signer.token({ iss: issuer, jti: `${n}` })),
    )
    const answers = await Promise.all(tokens.map((token) => verify(issuer, token)))
    expect(new Set(answers)).toEqual(new Set(['200 alice']))
    expect(seen.length).toBeLessThanOrEqual(2)
  })

  it('verifies new tokens for a day after its provider has ended [R09]', async () => {
    const issuer = server.url
    expect(await verify(issuer, await signer.token({ iss: issuer }))).toBe('200 alice')
    await server.close()
    const hour = 3_600
    for (const [secondsLater, answer] of [
      [1, '200 alice'],
      [hour, '200 alice'],
      [23 * hour, '200 alice'],
      [25 * hour, '503 key_set: unreachable'],
    ] as const) {
      const iat = NOW_SECONDS + secondsLater
      const token = await signer.token({ iss: issuer, jti: `${iat}`, iat, exp: iat + 300 })
      expect(await verify(issuer, token, secondsLater), `${secondsLater}`).toBe(answer)
    }
  })

  it('a document of another issuer is an outage [R10]', async () => {
    paths[OPENID] = json({ issuer: 'https://idp.test', jwks_uri: `${server.url}/keys` })
    const token = await signer.token({ iss: server.url })
    expect(await verify(server.url, token)).toBe('503 key_set: malformed')
  })
})
