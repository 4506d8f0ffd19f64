/** A client that proves to hold a key (RFC 9449). */
import { base64url, calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from 'jose'

export interface ProofOptions {
  readonly htm?: string
  readonly jti?: string
  readonly nonce?: string
  /** The token that the request presents. */
  readonly token?: string
}

export type Prover = Awaited<ReturnType<typeof createProver>>

export async function createProver() {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk = await exportJWK(publicKey)
  return {
    thumbprint: await calculateJwkThumbprint(jwk),
    /** A proof for a request to `url`. */
    async proof(url: string, { htm = 'POST', token, ...claims }: ProofOptions = {}) {
      const digest =
        token && (await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token)))
      return new SignJWT({
        ...{ htm, htu: url, jti: crypto.randomUUID(), ...claims },
        ...(digest && { ath: base64url.encode(new Uint8Array(digest)) }),
      })
        .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
        .setIssuedAt()
        .sign(privateKey)
    },
  }
}
