import { expect, it } from 'vitest'
import { createProofKeys } from '../../../src/access/tokens/dpop.ts'
import { createProver, goodProof } from './prover.ts'
import { outcome } from './signer.ts'

const prover = await createProver()

/** Creates a proof with a header of this number of `characters` in base64url. */
function proofWithHeaderOf(characters: number): Promise<string> {
  const header = { typ: 'dpop+jwt', alg: 'ES256', jwk: prover.jwk, pad: '' }
  const pad = 'x'.repeat((characters / 4) * 3 - JSON.stringify(header).length)
  return prover.signRaw(JSON.stringify({ ...header, pad }), JSON.stringify(goodProof))
}

it('the key of a proof is imported again until it is cached, and then found by the same header', async () => {
  const keys = createProofKeys()
  const first = await keys.find(await prover.proof())
  expect(first.thumbprint).toBe(prover.thumbprint)
  expect(await keys.find(await prover.proof())).not.toBe(first)
  keys.keep(await prover.proof(), first)
  expect(await keys.find(await prover.proof({ jti: 'another' }))).toBe(first)
  expect(await keys.find(await prover.proof({}, { kid: 'x' }))).not.toBe(first)
})

it('a header of up to 1,536 characters is cached, and a longer one uses no memory', async () => {
  for (const [characters, isKept] of [
    [1_536, true],
    [1_540, false],
  ] as const) {
    const keys = createProofKeys()
    const proof = await proofWithHeaderOf(characters)
    expect(proof.indexOf('.')).toBe(characters)
    const key = await keys.find(proof)
    keys.keep(proof, key)
    expect((await keys.find(proof)) === key, `${characters}`).toBe(isKept)
  }
})

it('a malformed proof is refused, though its header is cached', async () => {
  const keys = createProofKeys()
  const proof = await prover.proof()
  keys.keep(proof, await keys.find(proof))
  expect(await outcome(() => keys.find(`${proof}=`))).toBe('token_rejected:base64url')
})
