import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DPOP_ALGORITHMS } from '../../../src/crypto/dpop-algorithms.ts'
import { type Running, startWorkerd } from '../../origin/workerd.ts'
import { createProver, goodRequest, outcome, verifierOf } from './prover.ts'
import { NOW_MS } from './signer.ts'

const NONCE_SECRET = 'uYf2nW3vQk0rT8bLx5cZp1dHs7gJe4aM'

/** Bytes of signatures: shorter and longer than those of each algorithm, and of their length. */
const FORGED_LENGTHS = [1, 63, 64, 65, 255, 256, 257]

const coordinate = (hex: string) => Buffer.from(hex, 'hex').toString('base64url')
const FIVE = '459243b9aa581806fe913bce99817ade11ca503c64d9a3c533415c083248fbcc'
/** Coordinates of P-256 that are not a public key (SEC 1 section 3.2.2.1). */
const NO_POINTS = [
  ['a point that is not on its curve', { y: coordinate('01'.repeat(32)) }],
  ['the coordinates 0, 0', { x: coordinate('00'.repeat(32)), y: coordinate('00'.repeat(32)) }],
  [
    'a coordinate above the prime',
    {
      // The point with x = 5, written as 5 plus the prime.
      x: coordinate('ffffffff00000001000000000000000000000001000000000000000000000004'),
      y: coordinate(FIVE),
    },
  ],
] as const

let worker: Running
let origin: string
let nonce: string
beforeAll(async () => {
  worker = await startWorkerd({
    entry: join(import.meta.dirname, 'workers/proofs.ts'),
    vars: { NONCE_SECRET, NOW_MS: String(NOW_MS) },
  })
  origin = `http://127.0.0.1:${worker.port}`
  nonce = await (await fetch(`${origin}/nonce`)).text()
})
afterAll(() => worker.stop())

const send = async (...proofs: string[]) => {
  const headers = proofs.map((proof): [string, string] => ['DPoP', proof])
  const response = await fetch(`${origin}/orders?limit=1`, { headers })
  return { status: response.status, body: await response.json() }
}

describe('in workerd, a DPoP proof', () => {
  it.each(DPOP_ALGORITHMS)('of %s is verified, and a forged one is refused', async (alg) => {
    const prover = await createProver(alg)
    const proof = await prover.proof({ htu: `${origin}/orders`, nonce })
    expect(await send(proof)).toMatchObject({
      status: 200,
      body: { thumbprint: prover.thumbprint },
    })
    const forged = proof.replace(/\.[^.]{4}([^.]*)$/, '.AAAA$1')
    const refusal = { code: 'invalid_dpop_proof', check: 'signature' }
    expect(await send(forged)).toEqual({ status: 401, body: refusal })
  })

  it.each(DPOP_ALGORITHMS)('of %s with a signature of any length is refused [S04]', async (alg) => {
    const prover = await createProver(alg)
    const proof = await prover.proof({ htu: `${origin}/orders`, nonce })
    const [own] = proof.split(/\.[^.]+$/)
    const onNode = verifierOf()
    for (const bytes of FORGED_LENGTHS)
      for (const fill of [0x00, 0xff]) {
        const forged = `${own}.${Buffer.alloc(bytes, fill).toString('base64url')}`
        const { status, body } = (await send(forged)) as { status: number; body: { check: string } }
        expect([bytes, fill, status, body.check]).toEqual([bytes, fill, 401, 'signature'])
        expect(await outcome(() => onNode.verify({ ...goodRequest, header: forged }))).toBe(
          'invalid_dpop_proof:signature',
        )
      }
  })

  it.each(NO_POINTS)('with %s is refused [S08]', async (_, point) => {
    const { proof, jwk } = await createProver()
    const header = await proof({ htu: `${origin}/orders`, nonce }, { jwk: { ...jwk, ...point } })
    const refusal = { code: 'invalid_dpop_proof', check: 'jwk_import' }
    expect(await send(header)).toEqual({ status: 401, body: refusal })
    expect(await outcome(() => verifierOf().verify({ ...goodRequest, header }))).toBe(
      'invalid_dpop_proof:jwk_import',
    )
  })

  it('is refused if another proof accompanies it', async () => {
    const proof = await (await createProver()).proof({ htu: `${origin}/orders`, nonce })
    const refusal = { code: 'invalid_dpop_proof', check: 'multiple' }
    expect(await send(proof, proof)).toEqual({ status: 401, body: refusal })
  })

  it('may contain the nonce of a gateway in another runtime with the same keys', async () => {
    const elsewhere = verifierOf({ nonceSecret: NONCE_SECRET, nonceRequired: true })
    const { proof } = await createProver()
    const target = { method: 'GET', url: 'https://gateway.test/orders', token: 'a.b.c' }
    const header = await proof({ nonce })
    expect(await outcome(() => elsewhere.verify({ ...target, header }))).toBe('ok')
    const own = await proof({ htu: `${origin}/orders`, nonce: await elsewhere.nonce() })
    expect((await send(own)).status).toBe(200)
  })
})
