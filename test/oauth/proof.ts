/** Creates DPoP proofs for requests (RFC 9449). */
import { ath, createProver as createBareProver } from '../tokens/prover.ts'

export interface ProofOptions {
  readonly htm?: string
  readonly jti?: string
  readonly nonce?: string
  /** The token that the request presents. */
  readonly token?: string
}

export interface Prover {
  readonly thumbprint: string
  /** Creates a proof with the current time for a POST to `url`; `htm` overrides the method. */
  proof(url: string, options?: ProofOptions): Promise<string>
}

export async function createProver(): Promise<Prover> {
  const { proof, thumbprint } = await createBareProver()
  return {
    thumbprint,
    proof: (htu, { token, ...claims } = {}) =>
      proof({
        ...{ htm: 'POST', htu, jti: crypto.randomUUID(), iat: Math.floor(Date.now() / 1000) },
        ...claims,
        ath: token === undefined ? undefined : ath(token),
      }),
  }
}
