import { describe, expect, it } from 'vitest'
import { importKeys, keyFor } from '../../../src/access/tokens/key-ring.ts'
import { DEFAULT_ALGORITHMS as DEFAULTS } from '../../../src/validators/issuer.ts'
import { ALGORITHMS, type Algorithm } from '../../../src/validators/jwk.ts'
import { createSigner } from './signer.ts'

const [rsa, ec, ed] = await Promise.all([
  createSigner('RS256', 'rsa'),
  createSigner('ES256', 'ec'),
  createSigner('EdDSA', 'ed'),
])
const secret = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')

async function sorted(keys: readonly unknown[], allowed: readonly Algorithm[] = DEFAULTS) {
  const imported = await importKeys({ keys }, allowed)
  return {
    usable: [...(imported?.ring ?? [])].map(({ kid, algorithm }) => `${kid} ${algorithm}`),
    ignored: imported?.ignored.map(({ check }) => check),
  }
}
/** Returns the reason why a key is ignored. */
const fault = async (key: unknown, allowed?: readonly Algorithm[]) => {
  const { usable, ignored } = await sorted([key], allowed)
  expect(usable).toEqual([])
  return ignored?.[0]
}

/** A modulus of 2048 bits with the pattern of the flawed library. */
function rocaModulus(): string {
  const primes = Array.from({ length: 166 }, (_, index) => BigInt(index + 2)).filter((n) => {
    for (let d = 2n; d * d <= n; d++) if (n % d === 0n) return false
    return true
  })
  const product = primes.reduce((a, b) => a * b)
  let power = 1n
  for (let step = 0; step < 1_000; step++) power = (power * 65_537n) % product
  const n = (2n ** 2047n / product + 1n) * product + power
  return Buffer.from(n.toString(16).padStart(512, '0'), 'hex').toString('base64url')
}

const number = (hex: string) => Buffer.from(hex, 'hex').toString('base64url')

describe('keys in a key set [S08, S72]', () => {
  it('are used if sound, each for the algorithms that its type and the issuer allow', async () => {
    const { alg: _rsa, ...anyRsa } = rsa.publicJwk
    const { alg: _ed, ...anyEd } = ed.publicJwk
    expect(await sorted([rsa.publicJwk, ec.publicJwk, ed.publicJwk])).toEqual({
      usable: expect.arrayContaining(['rsa RS256', 'ec ES256', 'ed EdDSA']),
      ignored: [],
    })
    expect((await sorted([anyRsa])).usable).toEqual(['rsa RS256', 'rsa PS256'])
    expect((await sorted([anyRsa], ALGORITHMS)).usable).toHaveLength(6)
    expect((await sorted([anyEd], ALGORITHMS)).usable).toEqual(['ed EdDSA', 'ed Ed25519'])
    expect((await sorted([anyRsa], ['ES256'])).ignored).toEqual(['alg'])
    for (const extra of [
      { use: 'sig' },
      { key_ops: ['verify'] },
      { x5c: ['x'], x5t: 'y', ext: true, unknown: {} },
    ])
      expect((await sorted([{ ...ec.publicJwk, ...extra }])).usable).toEqual(['ec ES256'])
  })

  it('for other purposes are ignored', async () => {
    expect(await fault({ ...rsa.publicJwk, use: 'enc' })).toBe('use')
    expect(await fault({ ...rsa.publicJwk, key_ops: ['encrypt'] })).toMatch(/^key_ops/)
    expect(await fault({ ...rsa.publicJwk, key_ops: 'verify' })).toBe('key_ops')
    expect(await fault({ ...rsa.publicJwk, alg: 'RSA-OAEP-256' })).toBe('alg')
    expect(await fault({ ...rsa.publicJwk, alg: 'ES256' })).toBe('alg')
    expect(await fault({ ...rsa.publicJwk, alg: 'HS256' }, ALGORITHMS)).toBe('alg')
    expect(await fault({ ...rsa.publicJwk, alg: 'none' })).toBe('alg')
    expect(await fault({ ...rsa.publicJwk, alg: ['RS256'] })).toBe('alg')
    expect(await fault({ ...ec.publicJwk, crv: 'P-384' }, ALGORITHMS)).toMatch(/length|alg/)
    expect(await fault({ ...ec.publicJwk, crv: 'secp256k1' })).toBe('crv')
    expect(await fault({ ...ed.publicJwk, crv: 'X25519' })).toBe('crv')
    expect(await fault({ ...ec.publicJwk, kty: 'RSA' })).toBeDefined()
  })

  it('with contradictory or invalid members are ignored', async () => {
    for (const { publicJwk } of [rsa, ec, ed])
      expect(await fault({ ...publicJwk, k: secret }, ALGORITHMS)).toBe('k')
    for (const exp of ['1', Number.NaN]) expect(await fault({ ...ec.publicJwk, exp })).toBe('exp')
    expect((await sorted([{ ...ec.publicJwk, exp: 1.5 }])).usable).toEqual(['ec ES256'])
  })

  it('that are secrets count only if the issuer allows HS256, and only if they are long', async () => {
    expect(await fault({ kty: 'oct', k: secret, kid: 's' })).toBe('alg')
    expect((await sorted([{ kty: 'oct', k: secret, kid: 's' }], ['HS256'])).usable).toEqual([
      's HS256',
    ])
    expect(await fault({ kty: 'oct', k: secret.slice(0, 40) }, ['HS256'])).toMatch(/^k_length/)
    expect(await fault({ kty: 'oct', k: secret, alg: 'RS256' }, ALGORITHMS)).toBe('alg')
  })

  it('can only verify signatures after import, and cannot be exported', async () => {
    const keys = [rsa.publicJwk, ec.publicJwk, ed.publicJwk, { kty: 'oct', k: secret }]
    const imported = await importKeys({ keys }, [...DEFAULTS, 'HS256'])
    const cryptoKeys = [...(imported?.ring ?? [])].map(({ cryptoKey }) => cryptoKey)
    expect(cryptoKeys).toHaveLength(4)
    for (const key of cryptoKeys) {
      expect(key).toBeInstanceOf(CryptoKey)
      expect(key.usages).toEqual(['verify'])
      expect(key.extractable).toBe(false)
    }
  })

  it('with weak RSA parameters are ignored', async () => {
    const n = Buffer.from(rsa.publicJwk.n ?? '', 'base64url').toString('hex')
    expect(await fault({ ...rsa.publicJwk, n: number(`7f${n.slice(2)}`) })).toBe('n_size')
    expect(await fault({ ...rsa.publicJwk, n: number(`00${n.slice(2)}`) })).toBe('n_size')
    expect(await fault({ ...rsa.publicJwk, n: number(n.slice(256)) })).toBe('n_size')
    expect(await fault({ ...rsa.publicJwk, n: number(n.repeat(5)) })).toBe('n_size')
    expect(await fault({ ...rsa.publicJwk, n: number(`${n.slice(0, -1)}0`) })).toBe('n_even')
    expect(await fault({ ...rsa.publicJwk, n: rocaModulus() })).toBe('n_roca')
    for (const e of ['01', '03', '11', '0101', '010000', '00']) {
      expect(await fault({ ...rsa.publicJwk, e: number(e) }), e).toBe('e_value')
    }
    expect(await fault({ ...rsa.publicJwk, e: number('0100000001') })).toBe('e_size')
  })

  it('that write absent members as null are used as without them', async () => {
    const absent = ['d', 'k', 'alg', 'use', 'key_ops', 'exp', 'oth', 'x5c']
    const nulls = Object.fromEntries(absent.map((name) => [name, null]))
    for (const { publicJwk } of [rsa, ec, ed]) {
      const without = Object.entries(publicJwk).filter(([name]) => !absent.includes(name))
      const key = Object.fromEntries(without)
      expect(await sorted([{ ...key, ...nulls }])).toEqual(await sorted([key]))
    }
    for (const member of ['kty', 'crv', 'x', 'y'])
      expect(await fault({ ...ec.publicJwk, [member]: null })).toBe(member)
  })

  it('with a published private part are ignored', async () => {
    for (const { privateJwk } of [rsa, ec, ed]) expect(await fault(privateJwk)).toMatch(/^(d|p)$/)
    for (const member of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth']) {
      expect(await fault({ ...rsa.publicJwk, [member]: 'AQAB' })).toBe(member)
    }
  })

  it('that are malformed are ignored', async () => {
    for (const key of [null, 1, 'x', [], {}, { kty: 'EC' }, { kty: ['RSA'] }]) {
      expect(await fault(key), JSON.stringify(key)).toBeDefined()
    }
    for (const kid of ['', 1, {}, 'a'.repeat(257)]) {
      expect(await fault({ ...ec.publicJwk, kid })).toBe('kid')
    }
    for (const x of [
      '',
      'A',
      'AA==',
      'A+',
      1,
      null,
      undefined,
      `A${ec.publicJwk.x}`,
      ec.publicJwk.x?.slice(2),
    ]) {
      expect(await fault({ ...ec.publicJwk, x }), String(x)).toBeDefined()
    }
    expect(
      await fault({ ...ec.publicJwk, x: number('00'.repeat(32)), y: number('00'.repeat(32)) }),
    ).toBe('import')
    expect(await fault({ ...ec.publicJwk, y: ec.publicJwk.x })).toBe('import')
  })

  it('that share a kid and an algorithm are ignored unless they are one key, and an unusable duplicate has no effect', async () => {
    const other = await createSigner('ES256', 'ec')
    expect(await sorted([ec.publicJwk, other.publicJwk, ed.publicJwk])).toEqual({
      usable: ['ed EdDSA'],
      ignored: ['kid_duplicate', 'kid_duplicate'],
    })
    expect(await sorted([ec.publicJwk, ec.publicJwk])).toEqual({
      usable: ['ec ES256'],
      ignored: [],
    })
    expect((await sorted([ec.publicJwk, { ...ec.publicJwk, use: 'enc' }])).usable).toEqual([
      'ec ES256',
    ])
  })

  it('do not exist in a value that is not a JWK Set', async () => {
    for (const set of [undefined, null, 'x', [], {}, { keys: {} }, { keys: Array(129).fill({}) }])
      expect(await importKeys(set, DEFAULTS), JSON.stringify(set)).toBeUndefined()
  })

  it('are not found by the names of prototypes', async () => {
    const imported = await importKeys({ keys: [ec.publicJwk] }, DEFAULTS)
    for (const kid of ['__proto__', 'constructor', 'toString']) {
      expect(keyFor(imported?.ring ?? new Set(), { kid, alg: 'ES256' })).toBeUndefined()
    }
  })

  it('that are sound, generated or from the standards, are never ignored', async () => {
    const keys = await Promise.all(
      Array.from({ length: 8 }, (_, n) => createSigner('RS256', `${n}`)),
    )
    expect((await sorted(keys.map(({ publicJwk }) => publicJwk))).ignored).toEqual([])
  })
})
