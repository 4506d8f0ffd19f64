import { createHmac } from 'node:crypto'
import { exportSPKI, importJWK } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import {
  createSigner,
  encode,
  goodClaims,
  issuerOf,
  NOW_MS,
  outcome,
  type Signer,
} from './signer.ts'

const now = () => NOW_MS
let rs256: Signer
let ps256: Signer
let es256: Signer
let es384: Signer
let eddsa: Signer
let ed25519: Signer

beforeAll(async () => {
  ;[rs256, ps256, es256, es384, eddsa, ed25519] = await Promise.all([
    createSigner('RS256'),
    createSigner('PS256'),
    createSigner('ES256'),
    createSigner('ES384'),
    createSigner('EdDSA'),
    createSigner('Ed25519'),
  ])
})

const all = () => [rs256, ps256, es256, eddsa, ed25519]
const withoutAlg = ({ publicJwk: { alg: _alg, ...members } }: Signer): JsonWebKey => members

function check(token: string, keys: JsonWebKey[] = all().map((s) => s.publicJwk), overrides = {}) {
  const issuers = [issuerOf(keys, overrides)]
  return outcome(() => createTokenVerifier({ issuers, now }).verify(token))
}

describe('algorithms and keys', () => {
  it('accepts each default algorithm, with `alg` in the key and without', async () => {
    for (const signer of all()) {
      const token = await signer.token()
      expect(await check(token), signer.alg).toBe('ok')
      expect(await check(token, [withoutAlg(signer)]), signer.alg).toBe('ok')
    }
  })

  it('an algorithm outside the allow-list is refused, signed or not [S01]', async () => {
    const payload = encode(goodClaims)
    for (const alg of [
      'none',
      'None',
      'NONE',
      'nOnE',
      '',
      null,
      undefined,
      ['RS256'],
      0,
      {},
      'rs256',
      'HS256',
      'ES384',
      'constructor',
      '__proto__',
    ]) {
      const header = encode(JSON.stringify({ alg, kid: rs256.kid, typ: 'at+jwt' }))
      const { 2: signature } = (await rs256.signRaw('x', payload)).split('.')
      expect(await check(`${header}.${payload}.${signature}`), String(alg)).toBe(
        'token_rejected:alg',
      )
      expect(await check(`${header}.${payload}.`), String(alg)).toBe('token_rejected:segments')
      const signed = await rs256.token({}, { alg })
      expect(await check(signed), String(alg)).toBe('token_rejected:alg')
    }
  })

  it('an algorithm that the issuer does not allow is refused, even if its key exists [S01]', async () => {
    const token = await es384.token()
    const keys = [es256.publicJwk]
    expect(await check(token, keys)).toBe('token_rejected:alg')
    expect(await check(token, [es384.publicJwk], { algorithms: ['ES384'] })).toBe('ok')
    expect(await check(await es256.token(), keys, { algorithms: ['ES256'] })).toBe('ok')
    expect(await check(await eddsa.token(), keys, { algorithms: ['ES256'] })).toBe(
      'token_rejected:alg',
    )
  })

  it('a public key is never an HMAC secret [S02]', async () => {
    const key = (await importJWK(rs256.publicJwk as { kty: string }, 'RS256')) as CryptoKey
    const pem = await exportSPKI(key)
    const modulus = Buffer.from(rs256.publicJwk.n ?? '', 'base64url')
    const der = Buffer.from(
      new Uint8Array((await crypto.subtle.exportKey('spki', key)) as ArrayBuffer),
    )
    for (const secret of [
      pem,
      pem.trim(),
      der,
      JSON.stringify(rs256.publicJwk),
      modulus,
      rs256.publicJwk.n ?? '',
      '',
    ]) {
      const input = `${encode({ alg: 'HS256', kid: rs256.kid, typ: 'at+jwt' })}.${encode(goodClaims)}`
      const token = `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
      expect(await check(token)).toBe('token_rejected:alg')
      expect(await check(token, [withoutAlg(rs256)])).toBe('token_rejected:alg')
      // For an issuer with both a secret and a public key, HS256 is allowed for the secret only.
      const k = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')
      const mixed = [withoutAlg(rs256), { kty: 'oct', k, kid: 'secret' }]
      expect(await check(token, mixed, { algorithms: ['RS256', 'HS256'] })).toBe(
        'token_rejected:key_algorithm',
      )
    }
  })

  it('HS256 works for an issuer that allows it, with its secret only [S02]', async () => {
    const secret = crypto.getRandomValues(new Uint8Array(32))
    const jwk = { kty: 'oct', k: Buffer.from(secret).toString('base64url'), kid: 'secret' }
    const sign = (header: object, key: Uint8Array) => {
      const input = `${encode({ kid: 'secret', typ: 'at+jwt', ...header })}.${encode(goodClaims)}`
      return `${input}.${createHmac('sha256', key).update(input).digest('base64url')}`
    }
    const algorithms = ['HS256', 'RS256']
    expect(await check(sign({ alg: 'HS256' }, secret), [jwk], { algorithms })).toBe('ok')
    expect(await check(sign({ alg: 'HS256' }, secret.slice(1)), [jwk], { algorithms })).toBe(
      'token_rejected:signature',
    )
    expect(await check(sign({ alg: 'RS256' }, secret), [jwk], { algorithms })).toBe(
      'token_rejected:key_algorithm',
    )
    expect(await check(sign({ alg: 'HS384' }, secret), [jwk], { algorithms })).toBe(
      'token_rejected:alg',
    )
  })

  it('a key works for its own type and algorithm only [S03]', async () => {
    const cases: [Signer, object][] = [
      [rs256, { kid: 'ES256' }],
      [es256, { kid: 'RS256' }],
      [ps256, { kid: 'RS256' }],
      [rs256, { kid: 'PS256' }],
      [eddsa, { kid: 'ES256' }],
      [es256, { kid: 'EdDSA' }],
      [es256, { kid: 'Ed25519' }],
    ]
    for (const [signer, header] of cases) {
      const token = await signer.token({}, header)
      expect(await check(token), signer.alg).toBe('token_rejected:key_algorithm')
    }
    const relabelled = await rs256.token({}, { alg: 'PS256' })
    expect(await check(relabelled)).toBe('token_rejected:key_algorithm')
    // Without `alg` the key permits both, and the signature decides.
    expect(await check(relabelled, [withoutAlg(rs256)])).toBe('token_rejected:signature')
    expect(
      await check(await es384.token({}, { kid: 'ES256' }), undefined, {
        algorithms: ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519'],
      }),
    ).toBe('token_rejected:key_algorithm')
  })

  it('a key named Ed25519 verifies no EdDSA token, and the reverse [S03]', async () => {
    for (const [signer, alg] of [
      [eddsa, 'Ed25519'],
      [ed25519, 'EdDSA'],
    ] as const) {
      const renamed = await signer.token({}, { alg })
      expect(await check(renamed), alg).toBe('token_rejected:key_algorithm')
      expect(await check(renamed, [withoutAlg(signer)]), alg).toBe('ok')
      const only = { algorithms: [signer.alg] }
      expect(await check(renamed, [withoutAlg(signer)], only), alg).toBe('token_rejected:alg')
    }
  })

  it('degenerate and DER-encoded ECDSA signatures are refused [S04]', async () => {
    const token = await es256.token()
    const [header, payload, good = ''] = token.split('.')
    const order = 'ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551'
    const zero = '0'.repeat(64)
    const one = `${'0'.repeat(63)}1`
    const bytes = Buffer.from(good, 'base64url')
    const [r, s] = [bytes.subarray(0, 32).toString('hex'), bytes.subarray(32).toString('hex')]
    const integer = (hex: string) =>
      Number.parseInt(hex.slice(0, 2), 16) > 127 ? `022100${hex}` : `0220${hex}`
    const der = `${integer(r)}${integer(s)}`
    const signatures = [
      zero + zero,
      zero + one,
      one + zero,
      one + one,
      order + order,
      order + one,
      one + order,
      r + zero,
      zero + s,
      s + r,
      r,
      s,
      `${r}${s}00`,
      `00${r}${s}`,
      `${r}${s}`.slice(2),
      '00',
      `30${(der.length / 2).toString(16)}${der}`,
    ]
    for (const signature of signatures) {
      const forged = `${header}.${payload}.${Buffer.from(signature, 'hex').toString('base64url')}`
      expect(await check(forged), signature).toBe('token_rejected:signature')
    }
    expect(await check(token)).toBe('ok')
  })
})
