import { describe, expect, it } from 'vitest'
import { bearerToken } from '../../../src/access/tokens/credential.ts'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { createSigner, encode, goodClaims, issuerOf, NOW_MS, outcome } from './signer.ts'

const [es256, rs256, eddsa] = await Promise.all([
  createSigner('ES256'),
  createSigner('RS256'),
  createSigner('EdDSA'),
])
const verifier = createTokenVerifier({
  issuers: [issuerOf([es256.publicJwk, rs256.publicJwk, eddsa.publicJwk])],
  now: () => NOW_MS,
})

/** A small generator with a seed, so that a failure is repeatable. */
function dice(seed: number) {
  let state = seed
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return { below, pick: <T>(from: readonly T[]) => from[below(from.length)] as T }
}

const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  '',
  'x',
  '\ud800',
  '\u0000',
  '__proto__',
  [],
  {},
  [[]],
  [null],
  { a: 1 },
  'ES256',
  'none',
  'at+jwt',
  'https://idp.test/',
  'a'.repeat(300),
  ['https://api.test'],
  1_800_000_000,
  { __proto__: null, toString: 1 },
  { length: 1, 0: 'x' },
  Number.MAX_SAFE_INTEGER,
]
const HEADER = [
  'alg',
  'kid',
  'typ',
  'crit',
  'b64',
  'jwk',
  'jku',
  'cty',
  'zip',
  'enc',
  'epk',
  'p2c',
  'nonce',
  '__proto__',
  'constructor',
]
const CLAIMS = [
  'iss',
  'aud',
  'sub',
  'exp',
  'iat',
  'nbf',
  'jti',
  'scope',
  'scp',
  'roles',
  'tenant',
  'sid',
  'client_id',
  'azp',
  'cnf',
  '__proto__',
  'constructor',
  'toString',
  'then',
  'toJSON',
]

describe('a fuzzed token', () => {
  it('with mutated text is refused without any other error [S23, S28]', async () => {
    const token = await es256.token()
    const { below, pick } = dice(1)
    const letters = [...'AZaz09-_.=+/ ,\t\n\u00a0\u00e9\ud83d\u0000%"{}']
    for (let round = 0; round < 3_000; round++) {
      let text = token
      for (let edits = 1 + below(4); edits > 0; edits--) {
        const at = below(text.length + 1)
        text = pick([
          () => text.slice(0, at) + pick(letters) + text.slice(at + 1),
          () => text.slice(0, at) + pick(letters) + text.slice(at),
          () => text.slice(0, at) + text.slice(at + 1 + below(8)),
          () => text.slice(0, at) + text.slice(below(text.length)),
          () => text.slice(0, at),
        ])()
      }
      if (text === token) continue
      // A comma and another scheme behind it are a second credential.
      expect(await outcome(() => verifier.verify(bearerToken(`Bearer ${text}`))), text).toMatch(
        /^(token_|ambiguous_credentials|malformed_request)/,
      )
      expect(await outcome(() => verifier.verify(text)), text).toMatch(/^token_/)
    }
  })

  it('with signed nonsense is accepted or refused without any other error [S23]', async () => {
    const { below, pick } = dice(2)
    const seen = new Set<string>()
    for (let round = 0; round < 2_000; round++) {
      const signer = pick([es256, es256, eddsa])
      const header: Record<string, unknown> = { alg: signer.alg, kid: signer.kid, typ: 'at+jwt' }
      const claims: Record<string, unknown> = { ...goodClaims }
      if (below(4) === 0)
        Object.defineProperty(header, pick(HEADER), { value: pick(VALUES), enumerable: true })
      for (let edits = below(4); edits > 0; edits--) {
        Object.defineProperty(claims, pick(CLAIMS), {
          value: pick(VALUES),
          enumerable: true,
          configurable: true,
        })
      }
      const token = await signer.signRaw(JSON.stringify(header), JSON.stringify(claims))
      seen.add(await outcome(() => verifier.verify(token)))
    }
    expect(seen).toContain('ok')
    expect(seen.size).toBeGreaterThan(12)
    for (const result of seen) expect(result).toMatch(/^(ok|token_rejected:\w+)$/)
  })

  it('with a random signature of any length is refused [S04, S23]', async () => {
    const { below } = dice(3)
    for (const signer of [es256, rs256, eddsa]) {
      const input = (await signer.token()).split('.').slice(0, 2).join('.')
      for (let round = 0; round < 150; round++) {
        const bytes = Uint8Array.from({ length: 1 + below(300) }, () => below(256))
        expect(await outcome(() => verifier.verify(`${input}.${encode(bytes)}`))).toBe(
          'token_rejected:signature',
        )
      }
    }
  })
})
