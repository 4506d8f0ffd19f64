/** Tokens that are refused before any cryptography, so that a refusal costs nearly nothing. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { observed } from '../../harness/own-calls.ts'
import { createSigner, encode, goodClaims, issuerOf, NOW_MS, outcome } from './signer.ts'

const signer = await createSigner('ES256')
const verifier = createTokenVerifier({
  issuers: [issuerOf([signer.publicJwk])],
  now: () => NOW_MS,
})
const good = await signer.token()
const [header, payload, signature] = good.split('.')
const jwe = (members: object) => `${encode(members)}.QUFB.QUFB.QUFB.QUFB`

const OPERATIONS = [
  ...(['verify', 'sign', 'digest', 'importKey', 'decrypt'] as const),
  ...(['deriveKey', 'deriveBits', 'unwrapKey'] as const),
]
afterEach(() => void vi.unstubAllGlobals())

/**
 * Returns the outcome of a verification, and the number of Web Crypto operations that it started.
 */
async function cost(token: string) {
  let decompressions = 0
  vi.stubGlobal(
    'DecompressionStream',
    class {
      constructor() {
        decompressions++
      }
    },
  )
  let operations = 0
  const onCall = () => {
    operations += 1
  }
  const all = OPERATIONS.map((name) => ({ target: crypto.subtle, name, onCall }))
  const result = await observed(all, () => outcome(() => verifier.verify(token)))
  return { result, operations, decompressions }
}

describe('no cryptography and no decompression is run for [S21, S22]', () => {
  it.each([
    ['a token of 66 KB', `${header}.${payload}${'A'.repeat(66_000)}.${signature}`, 'length'],
    ['a token of 120 KB', `${header}.${'A'.repeat(120_000)}.${signature}`, 'length'],
    [
      'claims nested 4,000 deep',
      `${header}.${encode('['.repeat(4_000))}.${signature}`,
      'payload_json',
    ],
    [
      'a header nested 4,000 deep',
      `${encode(`{"alg":${'['.repeat(4_000)}`)}.${payload}.${signature}`,
      'header_json',
    ],
    ['a compressed JWE', jwe({ alg: 'dir', enc: 'A128GCM', zip: 'DEF' }), 'segments'],
    [
      'a JWE with 2^31 rounds of PBES2',
      jwe({ alg: 'PBES2-HS256+A128KW', enc: 'A128GCM', p2c: 2 ** 31, p2s: 'AAAA' }),
      'segments',
    ],
    [
      'a JWS that claims to be compressed and encrypted',
      `${encode({ alg: 'PBES2-HS256+A128KW', zip: 'DEF', p2c: 2 ** 31 })}.${payload}.${signature}`,
      'alg',
    ],
  ])('%s', async (_, token, check) => {
    const free = { operations: 0, decompressions: 0 }
    expect(await cost(token)).toEqual({ result: `token_rejected:${check}`, ...free })
  })

  it('the operations of a valid token are counted, so the counter works', async () => {
    const fresh = await signer.token({ ...goodClaims, jti: 'another' })
    const { result, operations } = await cost(fresh)
    expect(result).toBe('ok')
    expect(operations).toBeGreaterThan(0)
  })
})
