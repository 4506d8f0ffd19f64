/** Generates a private key for the gateway's own signatures. */
import { generateKeyPairSync } from 'node:crypto'

export function generateSigningJwk(kid: string) {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { ...privateKey.export({ format: 'jwk' }), kid, alg: 'ES256' }
}
