/** A client that proves possession of its key (DPoP, RFC 9449), for tests. */
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { sha256 } from '../crypto/sha256.ts'

export interface ProvenRequest {
  readonly method: string
  /** Absolute, without query and fragment. */
  readonly url: string
  /** The credential of the request. */
  readonly token: string
  readonly nonce: string | undefined
  readonly nowMs: number
}

export type Prover = Awaited<ReturnType<typeof createProver>>

const ALGORITHM = 'ES256'

/** Creates a prover with a new key. */
export async function createProver() {
  const { privateKey, publicKey } = await generateKeyPair(ALGORITHM, { extractable: true })
  const jwk = await exportJWK(publicKey)
  return {
    /** For the claim `cnf` of a token: `{ jkt: thumbprint }`. */
    thumbprint: await calculateJwkThumbprint(jwk),
    /** Signs a new proof for one request. */
    async prove({ method, url, token, nonce, nowMs }: ProvenRequest): Promise<string> {
      const claims = {
        htm: method,
        htu: url,
        ath: await sha256(token),
        iat: Math.floor(nowMs / 1000),
        jti: crypto.randomUUID(),
        nonce,
      }
      return new SignJWT(claims)
        .setProtectedHeader({ alg: ALGORITHM, typ: 'dpop+jwt', jwk })
        .sign(privateKey)
    },
  }
}
