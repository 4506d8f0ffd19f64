/** The issuer for tests: the gateway's verifier accepts its tokens, by configuration alone. */

import { createIssuer, type Issuer, type TokenOptions } from 'portcullis/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTokenVerifier } from '../../src/access/tokens/verifier.ts'
import { Denied } from '../../src/errors.ts'
import { DEFAULT_ALGORITHMS, issuers } from '../../src/validators/issuer.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'

const verifierOf = (...entries: readonly object[]) =>
  createTokenVerifier({ issuers: issuers.parse(entries) })

/** Returns the check that a token fails. */
async function rejectionOf(issuer: Issuer, token: string): Promise<unknown> {
  const error = await verifierOf(issuer.entry)
    .verify(token)
    .catch((reason: unknown) => reason)
  return error instanceof Denied && 'check' in error.denial ? error.denial.check : error
}

describe('createIssuer', () => {
  test.each(DEFAULT_ALGORITHMS)(
    'signs tokens with %s that the defaults accept',
    async (algorithm) => {
      const issuer = await createIssuer({ algorithm })
      const token = await issuer.token({
        sub: 'alice',
        roles: ['reader'],
        scope: ['orders:read', 'openid'],
        client: 'app',
        tenant: 'acme',
        session: 's1',
      })
      expect(await verifierOf(issuer.entry).verify(token)).toMatchObject({
        issuer: 'https://issuer.test',
        subject: 'alice',
        roles: ['reader'],
        scopes: ['orders:read', 'openid'],
        client: 'app',
        tenant: 'acme',
        session: 's1',
      })
    },
  )

  test('a token without options is valid, and each one has its own id', async () => {
    const issuer = await createIssuer()
    const verifier = verifierOf(issuer.entry)
    const [one, other] = await Promise.all(
      [issuer.token(), issuer.token()].map(async (token) => verifier.verify(await token)),
    )
    expect(one).toMatchObject({ subject: 'test-subject', client: 'test-client', roles: [] })
    expect(one?.tokenId).not.toBe(other?.tokenId)
  })

  test.each<[string, TokenOptions]>([
    ['exp', { expiresInSeconds: -10 }],
    ['aud', { audience: 'https://other.test' }],
    ['sub', { claims: { sub: undefined } }],
    ['typ', { header: { typ: 'JWT' } }],
    ['kid_unknown', { header: { kid: 'other' } }],
  ])('makes tokens that fail the check of %s', async (check, options) => {
    const issuer = await createIssuer()
    expect(await rejectionOf(issuer, await issuer.token(options))).toBe(check)
  })

  test('an issuer of the same name does not accept the token of another', async () => {
    const [issuer, impostor] = [await createIssuer(), await createIssuer()]
    expect(await rejectionOf(issuer, await impostor.token())).toBe('kid_unknown')
  })

  test('signs by the given clock', async () => {
    const issuer = await createIssuer({ now: () => Date.now() - 3_600_000 })
    expect(await rejectionOf(issuer, await issuer.token())).toBe('exp')
  })

  test('publishes public keys only', async () => {
    const { keys } = (await createIssuer()).jwks()
    expect(keys.map((key) => Object.keys(key).sort())).toEqual([
      ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'],
    ])
  })
})

describe('the documents of an issuer', () => {
  let served: Issuer | undefined
  let server: TestServer
  beforeAll(async () => {
    server = await startHttpServer(async ({ url = '' }, response) => {
      const answer = await served?.fetch(new URL(url, server.url))
      response.writeHead(answer?.status ?? 500, { 'content-type': 'application/json' })
      response.end(await answer?.text())
    })
  })
  afterAll(() => server.close())

  test.each(['', '/realms/demo', '/'])(
    'lead from an issuer with path "%s" to its keys',
    async (path) => {
      const issuer = await createIssuer({ issuer: server.url + path })
      served = issuer
      const base = issuer.issuer.replace(/\/$/, '')
      const rfc8414 = `${server.url}/.well-known/oauth-authorization-server${path.replace(/\/$/, '')}`
      for (const address of [`${base}/.well-known/openid-configuration`, rfc8414]) {
        const metadata = (await (await fetch(address)).json()) as {
          issuer: string
          jwks_uri: string
        }
        expect(metadata.issuer).toBe(issuer.issuer)
        expect(await (await fetch(metadata.jwks_uri)).json()).toEqual(issuer.jwks())
      }
      const { audience } = issuer
      const jwksUri = `${base}/.well-known/jwks.json`
      const verifier = verifierOf({ issuer: issuer.issuer, audience, jwksUri })
      expect(await verifier.verify(await issuer.token({ sub: 'alice' }))).toMatchObject({
        subject: 'alice',
      })
    },
  )

  test('any other path is 404, and a request or a text is accepted', async () => {
    const { fetch } = await createIssuer()
    expect((await fetch('https://issuer.test/other')).status).toBe(404)
    const request = new Request('https://issuer.test/.well-known/jwks.json')
    expect((await fetch(request)).status).toBe(200)
  })
})
