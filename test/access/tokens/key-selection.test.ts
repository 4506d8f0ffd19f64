/** `kid`, algorithm and key type together select a key (RFC 7517 section 4.5). */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { issuers } from '../../../src/validators/issuer.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { outcome } from './signer.ts'

type Pair = Awaited<ReturnType<typeof pairOf>>

async function pairOf(alg: string, options = {}) {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true, ...options })
  return { publicJwk: await exportJWK(publicKey), privateJwk: await exportJWK(privateKey) }
}

describe('a key set with one kid for several keys', () => {
  let server: TestServer
  let keys: object[] = []
  let [rsa, otherRsa, ec, otherEc, ed]: Pair[] = []
  beforeAll(async () => {
    server = await startHttpServer((_request, response) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ keys }))
    })
    ;[rsa, otherRsa, ec, otherEc, ed] = await Promise.all(
      ['RS256', 'RS256', 'ES256', 'ES256', 'Ed25519'].map((alg) => pairOf(alg)),
    )
  })
  afterAll(() => server?.close())

  /** The outcome of a token that this key signs, with `kid` k1 unless it is null. */
  async function outcomeOf(pair: Pair | undefined, alg: string, kid: string | null = 'k1') {
    const [issuer] = issuers.parse([
      { issuer: server.url, audience: 'api', jwksUri: `${server.url}/${crypto.randomUUID()}` },
    ])
    if (issuer === undefined || pair === undefined) throw new Error('not prepared')
    const verifier = createTokenVerifier({ issuers: [issuer], keySets: { report() {} } })
    const token = await new SignJWT({ aud: 'api', sub: 'alice' })
      .setProtectedHeader({ alg, typ: 'at+jwt', ...(kid !== null && { kid }) })
      .setIssuer(server.url)
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign({ ...pair.privateJwk, alg })
    return outcome(() => verifier.verify(token))
  }
  const named = (pair: Pair | undefined, alg?: string, kid: string | undefined = 'k1') => ({
    ...pair?.publicJwk,
    kid,
    ...(alg !== undefined && { alg }),
  })

  test('one RSA key for two algorithms verifies both', async () => {
    keys = [named(rsa, 'RS256'), named(rsa, 'PS256')]
    expect(await outcomeOf(rsa, 'RS256')).toBe('ok')
    expect(await outcomeOf(rsa, 'PS256')).toBe('ok')
    expect(await outcomeOf(otherRsa, 'RS256')).toBe('token_rejected:signature')
  })

  test('two RSA keys for two algorithms verify one each', async () => {
    keys = [named(rsa, 'RS256'), named(otherRsa, 'PS256')]
    expect(await outcomeOf(rsa, 'RS256')).toBe('ok')
    expect(await outcomeOf(otherRsa, 'PS256')).toBe('ok')
    expect(await outcomeOf(rsa, 'PS256')).toBe('token_rejected:signature')
  })

  test.each([undefined, 'alg'])('keys of different types verify one each (%s)', async (stated) => {
    const alg = (name: string) => (stated === undefined ? undefined : name)
    keys = [named(ec, alg('ES256')), named(rsa, alg('RS256')), named(ed, alg('EdDSA'))]
    expect(await outcomeOf(ec, 'ES256')).toBe('ok')
    expect(await outcomeOf(rsa, 'RS256')).toBe('ok')
    expect(await outcomeOf(ed, 'EdDSA')).toBe('ok')
    expect(await outcomeOf(ec, 'ES256', null)).toBe('ok')
  })

  test('the same key twice is one key, with and without alg, kid and certificates', async () => {
    for (const again of [
      named(rsa),
      named(rsa, 'RS256'),
      { ...named(rsa), use: 'sig', x5t: 'x' },
    ]) {
      keys = [named(rsa), again]
      expect(await outcomeOf(rsa, 'RS256')).toBe('ok')
      keys = [again, named(rsa)]
      expect(await outcomeOf(rsa, 'PS256')).toBe('ok')
    }
    const { kid: _, ...unnamed } = named(ec)
    keys = [unnamed, unnamed]
    expect(await outcomeOf(ec, 'ES256', null)).toBe('ok')
  })

  test('keys that only their material distinguishes are refused with that reason', async () => {
    keys = [named(ec), named(otherEc), named(rsa)]
    expect(await outcomeOf(ec, 'ES256')).toBe('token_rejected:kid_duplicate')
    expect(await outcomeOf(otherEc, 'ES256')).toBe('token_rejected:kid_duplicate')
    expect(await outcomeOf(rsa, 'RS256')).toBe('ok')
    // Ambiguous for one algorithm only.
    keys = [named(rsa), named(otherRsa, 'PS256')]
    expect(await outcomeOf(rsa, 'RS256')).toBe('ok')
    expect(await outcomeOf(otherRsa, 'PS256')).toBe('token_rejected:kid_duplicate')
  })

  test('a kid of another algorithm, and an unknown one, keep their reasons', async () => {
    keys = [named(rsa, 'RS256')]
    expect(await outcomeOf(rsa, 'PS256')).toBe('token_rejected:key_algorithm')
    expect(await outcomeOf(rsa, 'RS256', 'k2')).toBe('token_rejected:kid_unknown')
  })
})
