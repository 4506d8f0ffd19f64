import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { DPOP_ALGORITHMS } from '../../../src/crypto/dpop-algorithms.ts'
import { Misconfigured } from '../../../src/errors.ts'
import {
  ath,
  createProver,
  GATEWAY,
  goodProof,
  goodRequest,
  outcome,
  TOKEN,
  verifierOf,
} from './prover.ts'
import { createSigner, encode, NOW_MS, NOW_SECONDS } from './signer.ts'

const MAX_PROOF_AGE_SECONDS = 60

const prover = await createProver()
const verifier = verifierOf()

/** Returns the outcome of a `DPoP` header on an otherwise valid request. */
const check = (header: string | undefined, request: object = {}) =>
  outcome(() => verifier.verify({ ...goodRequest, ...request, header }))
const checkClaims = async (claims: object) => check(await prover.proof(claims))
const checkHeader = async (header: object) => check(await prover.proof({}, header))

describe('a DPoP proof (RFC 9449 section 4.3)', () => {
  it.each(DPOP_ALGORITHMS)('that is valid names its key, signed with %s', async (alg) => {
    const { proof, thumbprint } = await createProver(alg)
    expect(await verifier.verify({ ...goodRequest, header: await proof() })).toEqual({
      thumbprint,
      replayId: expect.stringMatching(/^[\w-]{43}$/),
      // A minute for late clocks, 10 s for clocks ahead, 15 s between the clocks of two gateways.
      replayTtlSeconds: 85,
    })
  })

  it('check 1: is the only one', async () => {
    const proof = await prover.proof()
    expect(await check(undefined)).toBe('invalid_dpop_proof:missing')
    expect(await check(`${proof}, ${proof}`)).toBe('invalid_dpop_proof:multiple')
    expect(await check(`${proof},`)).toBe('invalid_dpop_proof:multiple')
  })

  it('check 2: is one well-formed JWT, with one spelling', async () => {
    const proof = await prover.proof()
    const [header = '', payload = '', signature = ''] = proof.split('.')
    const good = JSON.stringify({ typ: 'dpop+jwt', alg: 'ES256', jwk: prover.jwk })
    for (const [text, verdict] of [
      ['', 'empty'],
      [`DPoP ${proof}`, 'authorization_grammar'],
      [`${header}.${payload}`, 'segments'],
      [`${header}..${signature}`, 'segments'],
      [`${proof}=`, 'base64url'],
      [`${header}.${payload}.${signature.slice(0, -1)}${signature.endsWith('B') ? 'C' : 'B'}`, ''],
      ['x'.repeat(8_193), 'length'],
      [await prover.signRaw('[]', '{}'), 'header_json'],
      [await prover.signRaw(`${good.slice(0, -1)},"alg":"ES256"}`, '{}'), 'header_json'],
      [await prover.signRaw(new Uint8Array([0xff]), '{}'), 'header_encoding'],
      [await prover.signRaw(good, 'null'), 'payload_json'],
      [await prover.signRaw(good, '{"jti":"a","jti":"b"}'), 'payload_json'],
    ] as const) {
      const refusal = await check(text)
      expect(refusal, text).toMatch(verdict === '' ? /:(base64url|signature)$/ : `:${verdict}`)
    }
  })

  it('check 3: has all required claims with the right types', async () => {
    for (const name of ['jti', 'htm', 'htu', 'iat', 'ath']) {
      expect(await checkClaims({ [name]: undefined })).toBe(`invalid_dpop_proof:${name}`)
      for (const malformed of [null, true, [], {}, name === 'iat' ? '1' : 1]) {
        expect(await checkClaims({ [name]: malformed })).toBe(`invalid_dpop_proof:${name}`)
      }
    }
    expect(await checkClaims({ nonce: 1 })).toBe('invalid_dpop_proof:nonce')
    expect(await checkClaims({ nonce: null, exp: null, nbf: null })).toBe('ok')
    expect(await checkClaims({ jti: '' })).toBe('invalid_dpop_proof:jti')
    expect(await checkClaims({ jti: 'x'.repeat(257) })).toBe('invalid_dpop_proof:jti')
    expect(await checkClaims({ jti: '\ud800' })).toBe('invalid_dpop_proof:jti')
    expect(await checkClaims({ jti: 'x'.repeat(256) })).toBe('ok')
  })

  it.each([
    ['another scheme', 'http://gateway.test/orders'],
    ['another host', 'https://evil.test/orders'],
    ['another port', 'https://gateway.test:8443/orders'],
    ['another path', `${GATEWAY}/orders/1`],
    ['a path in another case', `${GATEWAY}/ORDERS`],
    ['only a path', '/orders'],
  ])('check 9: for %s is refused', async (_name, htu) => {
    expect(await checkClaims({ htu })).toBe('invalid_dpop_proof:htu')
  })

  it.each([
    ['query and fragment', `${GATEWAY}/orders?limit=2#y`],
    ['case of scheme and host, and the default port', 'HTTPS://Gateway.Test:443/orders'],
    ['percent-encoding of unreserved characters', `${GATEWAY}/%6frd%65rs`],
  ])('check 9: with a difference in %s is accepted', async (_name, htu) => {
    expect(await checkClaims({ htu })).toBe('ok')
  })

  it('check 4: has the type dpop+jwt', async () => {
    for (const typ of [undefined, 'JWT', 'at+jwt', 'text/dpop+jwt', 'dpop+jwt ', null])
      expect(await checkHeader({ typ })).toBe('invalid_dpop_proof:typ')
    // The same media type (RFC 7515 section 4.1.9).
    for (const typ of ['application/dpop+jwt', 'DPoP+JWT'])
      expect(await checkHeader({ typ })).toBe('ok')
  })

  it('check 5: has an asymmetric and allowed algorithm [S01]', async () => {
    for (const alg of [undefined, 'none', 'HS256', 'RS1', 'ES256K', 'ES384', 'es256', 1])
      expect(await checkHeader({ alg })).toBe('invalid_dpop_proof:alg')
    const header = { typ: 'dpop+jwt', alg: 'none', jwk: prover.jwk }
    expect(await check(`${encode(header)}.${encode(goodProof)}.AAAA`)).toBe(
      'invalid_dpop_proof:alg',
    )
    // The type of the key does not match the algorithm.
    expect(await checkHeader({ alg: 'EdDSA' })).toBe('invalid_dpop_proof:jwk_alg')
    expect(await checkHeader({ alg: 'RS256' })).toBe('invalid_dpop_proof:jwk_alg')
  })

  it('check 6: is signed with the key that it contains [S04]', async () => {
    const other = await createProver()
    expect(await checkHeader({ jwk: other.jwk })).toBe('invalid_dpop_proof:signature')
    const [header, , signature] = (await prover.proof()).split('.')
    const payload = encode({ ...goodProof, jti: 'another' })
    expect(await check(`${header}.${payload}.${signature}`)).toBe('invalid_dpop_proof:signature')
    const [own] = (await prover.proof()).split(/\.[^.]+$/)
    for (const bytes of [1, 63, 64, 65, 72]) {
      const forged = `${own}.${Buffer.alloc(bytes).toString('base64url')}`
      expect(await check(forged)).toBe('invalid_dpop_proof:signature')
    }
  })

  it('with a cached key is valid only for its own signature and claims', async () => {
    const { proof, signRaw, jwk } = await createProver()
    const warm = verifierOf()
    const checkOfHeader = async (header: string) =>
      outcome(() => warm.verify({ ...goodRequest, header }))
    const header = JSON.stringify({ typ: 'dpop+jwt', alg: 'ES256', jwk })
    for (let round = 0; round < 2; round++) {
      expect(await checkOfHeader(await proof({ jti: `${round}` }))).toBe('ok')
      const [known] = (await proof()).split('.')
      const [, payload, signature] = (await prover.proof()).split('.')
      expect(await checkOfHeader(`${known}.${payload}.${signature}`)).toBe(
        'invalid_dpop_proof:signature',
      )
      expect(await checkOfHeader(`${known}.${payload}`)).toBe('invalid_dpop_proof:segments')
      expect(await checkOfHeader(`${await proof()}=`)).toBe('invalid_dpop_proof:base64url')
      expect(await checkOfHeader(await proof({ htm: 'POST' }))).toBe('invalid_dpop_proof:htm')
      expect(await checkOfHeader(await signRaw(header, '[]'))).toBe(
        'invalid_dpop_proof:payload_json',
      )
    }
  })

  it('check 7: contains a public, sound and asymmetric key [S08, S72]', async () => {
    const { jwk, privateJwk } = prover
    const { d } = privateJwk
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({
      format: 'jwk',
    })
    const huge = { kty: 'RSA', e: 'AQAB', n: randomBytes(1024).toString('base64url') }
    const secret = { kty: 'oct', k: randomBytes(32).toString('base64url') }
    const y = Buffer.alloc(32, 1).toString('base64url')
    for (const [bad, verdict, alg] of [
      [undefined, 'jwk', 'ES256'],
      ['text', 'jwk', 'ES256'],
      [[jwk], 'jwk', 'ES256'],
      [{ ...jwk, d }, 'jwk', 'ES256'],
      [privateJwk, 'jwk', 'ES256'],
      [{ ...jwk, k: secret.k }, 'jwk', 'ES256'],
      [secret, 'jwk', 'ES256'],
      [huge, 'jwk', 'RS256'],
      [weak, 'jwk_n_size', 'RS256'],
      [{ ...jwk, y }, 'jwk_import', 'ES256'],
      [{ ...jwk, x: `${jwk.x}A` }, 'jwk_', 'ES256'],
      [{ ...jwk, crv: 'P-384' }, 'jwk_', 'ES256'],
      [{ ...jwk, use: 'enc' }, 'jwk_use', 'ES256'],
      [{ ...jwk, key_ops: ['sign'] }, 'jwk_key_ops', 'ES256'],
      [{ ...jwk, alg: 'ES384' }, 'jwk_alg', 'ES256'],
      [{ kty: 'OKP', crv: 'X25519', x: jwk.x }, 'jwk_crv', 'EdDSA'],
      [{ kty: 'constructor' }, 'jwk_', 'ES256'],
    ] as const) {
      const refusal = await checkHeader({ jwk: bad, alg })
      expect(refusal, JSON.stringify(bad)).toContain(`invalid_dpop_proof:${verdict}`)
    }
    expect(await checkHeader({ crit: ['exp'] })).toBe('invalid_dpop_proof:crit')
    expect(await checkHeader({ b64: false })).toBe('invalid_dpop_proof:b64')
  })

  it('check 8: is for exactly this method', async () => {
    for (const htm of ['POST', 'get', 'GET ', 'HEAD', ''])
      expect(await checkClaims({ htm })).toBe('invalid_dpop_proof:htm')
    const proof = await prover.proof()
    expect(await check(proof, { method: 'DELETE' })).toBe('invalid_dpop_proof:htm')
  })

  it('check 11: was created at most a minute ago, and at most 10 seconds in the future', async () => {
    for (const [offset, verdict] of [
      [-MAX_PROOF_AGE_SECONDS - 1, 'invalid_dpop_proof:iat'],
      [-MAX_PROOF_AGE_SECONDS - 0.001, 'invalid_dpop_proof:iat'],
      [-MAX_PROOF_AGE_SECONDS, 'ok'],
      [-0.5, 'ok'],
      [10, 'ok'],
      [10.001, 'invalid_dpop_proof:iat'],
      [11, 'invalid_dpop_proof:iat'],
      [1_000 * NOW_SECONDS, 'invalid_dpop_proof:iat'],
    ] as const) {
      expect(await checkClaims({ iat: NOW_SECONDS + offset }), `${offset}`).toBe(verdict)
    }
    const payload = JSON.stringify(goodProof).replace(/"iat":\d+/, '"iat":1e400')
    const header = JSON.stringify({ typ: 'dpop+jwt', alg: 'ES256', jwk: prover.jwk })
    expect(await check(await prover.signRaw(header, payload))).toBe('invalid_dpop_proof:iat')
  })

  it('is refused when a life that its client set has ended or not begun', async () => {
    for (const [claims, verdict] of [
      [{ exp: NOW_SECONDS - 11 }, 'invalid_dpop_proof:exp'],
      [{ exp: NOW_SECONDS - 10 }, 'invalid_dpop_proof:exp'],
      [{ exp: NOW_SECONDS - 9 }, 'ok'],
      [{ exp: NOW_SECONDS + 60, nbf: NOW_SECONDS }, 'ok'],
      [{ nbf: NOW_SECONDS + 10 }, 'ok'],
      [{ nbf: NOW_SECONDS + 11 }, 'invalid_dpop_proof:nbf'],
      [{ exp: '1' }, 'invalid_dpop_proof:exp'],
      [{ nbf: true }, 'invalid_dpop_proof:nbf'],
    ] as const)
      expect(await checkClaims(claims), JSON.stringify(claims)).toBe(verdict)
  })

  it('check 12: is for exactly this access token', async () => {
    const proof = await prover.proof()
    expect(await check(proof, { token: 'a.b.d' })).toBe('invalid_dpop_proof:ath')
    expect(await checkClaims({ ath: `${ath(TOKEN)}=` })).toBe('invalid_dpop_proof:ath')
    expect(await checkClaims({ ath: TOKEN })).toBe('invalid_dpop_proof:ath')
    // At the token endpoint there is no access token yet.
    const { token: _, ...atTokenEndpoint } = goodRequest
    const header = await prover.proof({ ath: undefined })
    expect(await outcome(() => verifier.verify({ ...atTokenEndpoint, header }))).toBe('ok')
  })

  it('with any content is accepted or refused, and never causes another error [S23]', async () => {
    const malformedValues = [
      null,
      '',
      0,
      -1,
      1e308,
      true,
      [],
      {},
      [[]],
      '__proto__',
      '\ud800',
      '💥',
    ]
    for (const malformed of malformedValues) {
      for (const name of ['typ', 'alg', 'jwk', 'kid', 'jku', 'x5c', '__proto__', 'constructor'])
        await checkHeader({ [name]: malformed })
      for (const name of ['kty', 'crv', 'x', 'y', 'kid', 'alg', 'use', 'key_ops', 'n', 'toString'])
        await checkHeader({ jwk: { ...prover.jwk, [name]: malformed } })
      for (const name of Object.keys({ ...goodProof, nonce: '', exp: 0, nbf: 0 }))
        await checkClaims({ [name]: malformed })
    }
    const proof = await prover.proof()
    for (let at = 0; at < proof.length; at += 3) {
      const refusal = await check(
        `${proof.slice(0, at)}${proof[at] === 'A' ? 'B' : 'A'}${proof.slice(at + 1)}`,
      )
      expect(refusal, `${at}`).toMatch(/^invalid_dpop_proof:/)
    }
  })

  it('cannot be replaced by an access token or an assertion, even if its key is cached', async () => {
    const signer = await createSigner('ES256')
    expect(await check(await signer.token())).toBe('invalid_dpop_proof:typ')
  })
})

describe('the replay of a proof', () => {
  const replayId = async (header: string) =>
    (await verifier.verify({ ...goodRequest, header })).replayId

  it('is detected in every spelling and for every request, by its key and jti alone', async () => {
    const one = await replayId(await prover.proof())
    expect(await replayId(await prover.proof({ iat: NOW_SECONDS - 1 }))).toBe(one)
    expect(await replayId(await prover.proof({}, { jwk: { ...prover.jwk, kid: 'x' } }))).toBe(one)
    expect(await replayId(await prover.proof({ jti: 'proof-2' }))).not.toBe(one)
    expect(await replayId(await (await createProver()).proof())).not.toBe(one)
  })

  it('has a storage key of fixed length with one separator, whatever its jti is [S32]', async () => {
    for (const jti of ['*', ':', 'a:b', '\u0000', 'x'.repeat(256), '["a","b"]', '💥'])
      expect(await replayId(await prover.proof({ jti }))).toMatch(/^[\w-]{43}$/)
  })

  it('is detected for as long as any gateway would accept the proof, with 15 s of clock skew', async () => {
    const skewMs = 7_500
    const [ahead, behind] = [skewMs, -skewMs].map((offset) => {
      const clock = { nowMs: 0 }
      return { clock, verifier: verifierOf({ now: () => clock.nowMs + offset }) }
    }) as [Clocked, Clocked]
    const accepts = async ({ clock, verifier }: Clocked, nowMs: number, header: string) => {
      clock.nowMs = nowMs
      return (await outcome(() => verifier.verify({ ...goodRequest, header }))) === 'ok'
    }
    const header = await prover.proof()
    // The first time at which one gateway accepts it, and the outcome at the other when it is
    // forgotten.
    let firstMs = NOW_MS - 60_000
    while (!(await accepts(ahead, firstMs, header))) firstMs += 500
    const { replayTtlSeconds } = await ahead.verifier.verify({ ...goodRequest, header })
    expect(await accepts(behind, firstMs + (replayTtlSeconds - 1) * 1000, header)).toBe(true)
    expect(await accepts(behind, firstMs + replayTtlSeconds * 1000 + 1, header)).toBe(false)
  })
})

interface Clocked {
  readonly clock: { nowMs: number }
  readonly verifier: ReturnType<typeof verifierOf>
}

describe('the examples in RFC 9449', () => {
  // Sections 4.1 and 7.1.
  const header =
    'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNo' +
    'UklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERW' +
    'clUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19'
  const atTokenEndpoint =
    `${header}.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4` +
    'YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4P' +
    'tFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg'
  const atResource =
    `${header}.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5l` +
    'eGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNF' +
    'c05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8' +
    'y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA'
  const thumbprint = '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I'
  const now = () => 1_562_262_620_000

  it('are accepted with their key and their token', async () => {
    const server = verifierOf({ publicUrl: 'https://server.example.com', now })
    const url = 'https://server.example.com/token'
    const first = await server.verify({ method: 'POST', url, header: atTokenEndpoint })
    expect(first).toMatchObject({ thumbprint })
    const resource = verifierOf({ publicUrl: 'https://resource.example.org', now })
    const second = await resource.verify({
      method: 'GET',
      url: 'https://resource.example.org/protectedresource',
      header: atResource,
      token: 'Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU',
    })
    expect(second).toMatchObject({ thumbprint })
  })
})

describe('the verifier of proofs', () => {
  it('cannot be created if it cannot store replays for the configured time', () => {
    expect(() => verifierOf({ nonceRequired: true })).toThrow(Misconfigured)
  })
})
