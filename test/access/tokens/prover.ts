/** A client that has a key and proves it, or claims to. */
import { createHash } from 'node:crypto'
import { calculateJwkThumbprint, type JWK } from 'jose'
import { createDpopVerifier, type DpopVerifierOptions } from '../../../src/access/tokens/dpop.ts'
import type { DPOP_ALGORITHMS } from '../../../src/crypto/dpop-algorithms.ts'
import { Denied } from '../../../src/errors.ts'
import { createSigner, NOW_MS, NOW_SECONDS } from './signer.ts'

export const GATEWAY = 'https://gateway.test'
export const TOKEN = 'a.b.c'
export const ath = (token: string) => createHash('sha256').update(token).digest('base64url')

export const goodProof = {
  jti: 'proof-1',
  htm: 'GET',
  htu: `${GATEWAY}/orders`,
  iat: NOW_SECONDS,
  ath: ath(TOKEN),
} as const

/** The request that {@link goodProof} is for. */
export const goodRequest = { method: 'GET', url: `${GATEWAY}/orders?limit=1#x`, token: TOKEN }

export interface Prover {
  readonly jwk: JsonWebKey
  readonly privateJwk: JsonWebKey
  readonly thumbprint: string
  /** Creates a valid proof with the given changes; `undefined` removes a member. */
  proof(claims?: object, header?: object): Promise<string>
  /** Signs two texts (or bytes) unchanged. */
  signRaw(header: string | Uint8Array, payload: string | Uint8Array): Promise<string>
}

export async function createProver(
  alg: (typeof DPOP_ALGORITHMS)[number] = 'ES256',
): Promise<Prover> {
  const { publicJwk, privateJwk, signRaw } = await createSigner(alg)
  const { kid: _, alg: __, ...jwk } = publicJwk as JsonWebKey & { kid: string }
  return {
    jwk,
    privateJwk,
    thumbprint: await calculateJwkThumbprint(jwk as JWK),
    signRaw,
    proof: (claims = {}, header = {}) =>
      signRaw(
        JSON.stringify({ typ: 'dpop+jwt', alg, jwk, ...header }),
        JSON.stringify({ ...goodProof, ...claims }),
      ),
  }
}

export const verifierOf = (options: Partial<DpopVerifierOptions> = {}) =>
  createDpopVerifier({
    publicUrl: GATEWAY,
    nonceSecret: undefined,
    nonceRequired: false,
    now: () => NOW_MS,
    ...options,
  })

/** Returns `ok`, the check that refused (`invalid_dpop_proof:htu`), or `use_dpop_nonce`. */
export async function outcome(attempt: () => Promise<unknown>): Promise<string> {
  try {
    await attempt()
    return 'ok'
  } catch (error) {
    if (!(error instanceof Denied)) throw error
    const { denial } = error
    return denial.code === 'invalid_dpop_proof' ? `invalid_dpop_proof:${denial.check}` : denial.code
  }
}
