/**
 * Reads the gateway's own JWTs for any audience. The gateway's verifier accepts only its own
 * audience.
 */

import type { Principal } from '../identity/principal.ts'
import { principalFrom } from '../tokens/claims.ts'
import { own, readHeader, readPayload, verifySignature } from '../tokens/jws.ts'
import { createInlineKeySet } from '../tokens/key-set.ts'
import { rejected } from '../tokens/rejection.ts'
import { ACCESS_TOKEN_TYPE } from '../tokens/token-issuer.ts'
import { ownIssuer } from '../validators/issuer.ts'
import type { SigningJwk } from '../validators/signing-jwk.ts'

export interface OwnTokenOptions {
  /** The gateway's public URL. */
  readonly issuer: string
  readonly keys: readonly SigningJwk[]
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export interface OwnTokenReader {
  /**
   * Reads a token. Throws `Denied` (`token_rejected`) if the gateway did not issue it, or if it is
   * not valid.
   */
  read(token: string): Promise<{ principal: Principal; audiences: readonly string[] }>
}

/**
 * Creates the reader. It performs the checks of the gateway's verifier except that of the audience,
 * which may be another resource. The result is for callers that may introspect or revoke the token.
 * It does NOT authorize a request to the gateway.
 */
export function createOwnTokenReader({ issuer, keys, now }: OwnTokenOptions): OwnTokenReader {
  const config = ownIssuer(issuer, keys)
  const { algorithms } = config
  const keySet = createInlineKeySet(config.jwks, algorithms, now)

  return {
    async read(token) {
      const header = readHeader(token)
      const payload = readPayload(token)
      if (own(payload, 'iss') !== issuer) throw rejected('iss')
      if (!algorithms.some((algorithm) => algorithm === header.alg)) throw rejected('alg')
      if (header.typ !== ACCESS_TOKEN_TYPE) throw rejected('typ')
      await verifySignature(token, await keySet.find(header))
      const audiences = audiencesOf(own(payload, 'aud'))
      const options = { nowMs: now(), isOwn: true }
      const principal = await principalFrom(payload, { ...config, audience: audiences }, options)
      return { principal, audiences }
    },
  }
}

function audiencesOf(aud: unknown): string[] {
  const all = Array.isArray(aud) ? aud : [aud]
  if (all.length === 0 || !all.every((one) => typeof one === 'string')) throw rejected('aud')
  return all
}
