import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readHeader, verifySignature } from '../../../src/access/tokens/jws.ts'
import { createInlineKeySet } from '../../../src/access/tokens/key-set.ts'
import { ALGORITHMS } from '../../../src/validators/jwk.ts'
import { outcome } from './signer.ts'

interface Group {
  readonly comment: string
  readonly public?: { kty: string }
  readonly private: { kty: string }
  readonly tests: readonly {
    readonly tcId: number
    readonly comment: string
    readonly jws: string
    readonly result: 'valid' | 'invalid'
  }[]
}

const file = join(import.meta.dirname, '../../vectors/wycheproof/json_web_signature_test.json')
const { testGroups } = JSON.parse(readFileSync(file, 'utf8')) as { testGroups: Group[] }
const cases = testGroups.flatMap((group) => group.tests.map((test) => ({ ...test, group })))

/** Valid messages that a verifier of access tokens refuses, and the reason. */
const STRICTER = new Map([
  ...[259, 264, 268, 272, 320, 325].map((id) => [id, 'token_rejected:segments'] as const),
  // The text has a character outside the alphabet, which lenient decoders skip.
  [372, 'token_rejected:base64url'],
  [373, 'token_rejected:base64url'],
  // The key is for PS256, or for an algorithm that does not exist, and the message has another one.
  [346, 'token_rejected:key_algorithm'],
  [350, 'token_rejected:key_algorithm'],
  [347, 'token_rejected:kid_unknown'],
  [351, 'token_rejected:kid_unknown'],
])

/** Invalid according to the suite, but byte for byte equal to case 357, which it calls valid. */
const SAME_AS_VALID = [367, 370]

/** The verifier's own path from the text to the signature, without the claims. */
function verify(jws: string, key: object): Promise<string> {
  return outcome(async () => {
    const keySet = createInlineKeySet({ keys: [key as { kty: string }, DECOY] }, ALGORITHMS)
    await verifySignature(jws, await keySet.find(readHeader(jws)))
  })
}

/** A second key, so that a set is not empty if its other key is ignored. */
const DECOY = {
  kty: 'OKP',
  crv: 'Ed25519',
  alg: 'Ed25519',
  kid: 'decoy',
  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
}

describe('Wycheproof: JSON Web Signature', () => {
  it('contains its 401 cases', () => {
    expect(cases).toHaveLength(401)
    expect(cases.filter(({ result }) => result === 'valid')).toHaveLength(46)
  })

  it('contradicts itself in exactly two cases', () => {
    const valid = new Set(cases.filter(({ result }) => result === 'valid').map(({ jws }) => jws))
    const contradictions = cases.filter(
      ({ result, jws, group }) =>
        result === 'invalid' && valid.has(jws) && group.comment === 'base64',
    )
    expect(contradictions.map(({ tcId }) => tcId)).toEqual(SAME_AS_VALID)
  })

  it.each(testGroups.map((group, index) => ({ group, name: `${index} ${group.comment}` })))(
    'group $name [S01, S02, S04, S08, S19]',
    async ({ group }) => {
      const { tests, private: own, public: published = own } = group
      for (const { tcId, comment, jws, result } of tests) {
        const got = await verify(jws, published)
        const label = `${tcId} ${comment}: ${got}`
        if (SAME_AS_VALID.includes(tcId)) expect(got, label).toBe('ok')
        else if (result === 'invalid') expect(got, label).toMatch(/^token_rejected:/)
        else expect(got, label).toBe(STRICTER.get(tcId) ?? 'ok')
      }
    },
  )
})
